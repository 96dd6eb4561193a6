"""What staff write about students' work, and the rubric that they grade it by.

comments    comments: post, edit, withdraw; who sees which
carried     comments on earlier versions, beside the lines that they are about now
rubrics     an assignment's rubric, and what it comes to for a student
saved       comments that are used again and again
sheets      whose turn it is to be graded by hand
"""
