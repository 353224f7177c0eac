"""Sets a project up, and undoes it: the log's folder, the harness's hooks, compiled files, backfill."""
