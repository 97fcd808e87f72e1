"""Run by Alembic. Upgrades over the connection that `connection.py` hands in, inside its
transaction and lock.
"""

from alembic import context

from policies.experience.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
