"""What earlier turns of a conversation were about, so that a follow-up can be understood."""
