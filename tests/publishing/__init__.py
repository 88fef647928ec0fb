"""What becomes of published images elsewhere: other programs serve them, and anybody replays them."""
