"""Documents at the edges: policies and plans as YAML, snapshots and samples as JSON, all versioned and checked."""
