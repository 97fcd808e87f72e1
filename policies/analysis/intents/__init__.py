"""What kind of answer a query wants: a small trained classifier, and rules for what it is unsure
of.
"""

from policies.analysis.intents.classifier import IntentReader

__all__ = ["IntentReader"]
