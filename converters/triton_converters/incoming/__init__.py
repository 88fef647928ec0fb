"""What user code leaves in INCOMING_MOUNT: how it is written, and how it is read without trust."""
