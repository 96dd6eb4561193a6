"""Messages: what one person is told, in the app and by mail.

kinds    what there is to be told, what it is called, whether it comes by mail
messages  tell people; what they have not read; how they want it
outbox   the mail that waits: who sends it next, and what became of it
mail     a mail as text, and the two ways to send one
sender   takes what is due, sends it, writes down what became of it
"""
