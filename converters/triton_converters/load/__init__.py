"""One module a framework: from the user's file to something that runs."""
