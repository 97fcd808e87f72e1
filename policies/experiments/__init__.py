"""Two policies on live traffic: who gets which, whether the difference is real, when to stop."""
