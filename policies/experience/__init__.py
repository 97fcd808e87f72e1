"""What was decided and what came of it: records, feedback signals, the database that keeps them."""
