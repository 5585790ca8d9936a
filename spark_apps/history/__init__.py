"""Raw samples to lag history: one row for each queue and time between two samples."""
