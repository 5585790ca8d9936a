"""Plans that are not made, each with a name: what is asked for would do harm, or nobody could say what it does."""

from enum import StrEnum

from planner.errors import RefusedError


class Refusal(StrEnum):
    """Why there is no plan. The name is for programs, the sentence of the error for people."""

    SPLIT_BRAIN = "SplitBrain"
    MIXED_SUBSCRIPTIONS = "MixedSubscriptions"
    MORE_CONSUMERS_THAN_USEFUL = "MoreConsumersThanUseful"
    TOO_FEW_QUEUES = "TooFewQueues"
    VICTIMS_CANNOT_BE_CHOSEN = "VictimsCannotBeChosen"
    ORDERLY_WITHOUT_SURGE = "OrderlyWithoutSurge"
    OTHER_SCALER = "OtherScaler"
    NOT_AT_REST = "NotAtRest"
    SEVERAL_MEMBERS_A_POD = "SeveralMembersAPod"
    OLD_DATA = "OldData"
    UNKNOWN_STRATEGY = "UnknownStrategy"
    OUTSIDE_POLICY = "OutsidePolicy"
    LISTS_COME_FIRST = "ListsComeFirst"


def refused(refusal: Refusal, sentence: str) -> RefusedError:
    """Return the error to raise; ``sentence`` names what was found and what to do."""
    return RefusedError(refusal.value, sentence)
