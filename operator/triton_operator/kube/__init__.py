"""The API server: requests, kinds, ownership, and what differs from what is desired."""
