"""From logged experience to a published policy: cleaning, time split, judgement, refusal."""
