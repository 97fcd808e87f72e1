"""What the process of a skill's replica imports: a running service waits for it at each change."""

import subprocess
import sys

from skills.registry import SkillRegistry

NOT_NEEDED = (
    "alembic", "elasticsearch", "ingest", "policies.experience", "policies.learned", "psycopg",
    "qdrant_client", "redis", "scipy", "serve_app.gateway", "sqlalchemy", "torch", "xgboost",
)  # fmt: skip


def test_a_skills_replica_imports_no_gateway_no_database_and_no_training():
    manifests = SkillRegistry.load().manifests.values()
    modules = sorted({m.class_path.rpartition(".")[0] for m in manifests if m.enabled})
    embedded = ["skills.stores.qdrant_edge", "skills.encoders.e5"]
    program = f"import sys, serve_app.deployments.part, {', '.join(modules + embedded)}\n"
    program += f"print([name for name in {NOT_NEEDED} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True
    )
    assert "[]" == done.stdout.strip(), done.stderr
