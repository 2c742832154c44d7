"""The receiver: from an HTTP request to a verified event, handled at most once, and an answer that the sender reads
rightly. The order is fixed:

    method, size -> authenticate -> freshness -> key syntax -> reserve the key -> handler -> keep the result -> answer

Nothing is parsed before it is authenticated, nothing is written before the key is good, nothing runs before the key is
reserved, and nothing is answered before the result is kept. It knows no server: `godwit.wsgi` and `godwit.asgi` do.
"""
