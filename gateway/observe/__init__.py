"""What the gateway tells about itself: metrics, logs, traces, and how late its loop runs.

Never content: no prompt, answer, key or URL passes through here (promise 13). The rooms above
hand over names, numbers and kinds; this room must not know any of them.
"""
