"""Quizzes as people take them: answers come in, and explanations go out to whoever may read them."""
