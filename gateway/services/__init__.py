"""What an endpoint does beyond one call: state that outlives a request, and its upkeep."""
