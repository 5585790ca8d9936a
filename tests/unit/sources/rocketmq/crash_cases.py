"""Inputs that once raised something else than our own errors, or would have used up memory: they stay.

Each is (request code, "frame" or "body", the bytes). ``fuzz`` prints new ones in this form.
"""

CASES: list[tuple[str, str, bytes]] = [
    # OverflowError: an integer of JSON that no float can hold, in the place of a number.
    ("208", "body", b'{"consumeTps":' + b"9" * 400 + b',"offsetTable":{}}'),
    ("307", "body", b'{"statusTable":{"T":{"consumeRT":' + b"9" * 400 + b"}}}"),
    # Two billion queues would have been listed one by one.
    (
        "105",
        "body",
        b'{"queueDatas":[{"brokerName":"b","perm":6,"readQueueNums":2147483647,"writeQueueNums":1}]}',
    ),
]
