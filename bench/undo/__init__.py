"""Two bad revisions under real load, undone by themselves: with `soak` the Service moves, with `canary` it does not."""
