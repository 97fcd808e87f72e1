"""What another policy would have earned, judged from what this one logged."""
