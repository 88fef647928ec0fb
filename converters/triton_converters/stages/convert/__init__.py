"""Stage ``convert``: make one candidate's file, unless its key has one already, and the revision that serves it.

``produce`` writes each conversion into a folder of INCOMING_MOUNT that is named by its conversion key.
"""
