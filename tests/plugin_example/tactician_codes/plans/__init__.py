"""Plans that use the skill."""
