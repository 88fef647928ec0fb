"""What each Job is asked and under which key. Pure: requests and keys, no decision."""
