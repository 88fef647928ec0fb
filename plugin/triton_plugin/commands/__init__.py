"""The commands, one module each: ``add_arguments`` describes what it takes, and ``run`` returns its exit status.

Only the module of the command that was typed is imported: all of them together take seconds.
"""

COMMANDS = {
    "run": "Push a model folder, write a first TritonDeployment for it, apply it, and watch it until it is ready.",
    "init": "Write a first TritonDeployment for a model folder to standard output.",
    "validate": "Check files for what the API server and the operator would refuse; needs no cluster.",
    "push": "Copy a folder or a file to a claim, and print what spec.source takes.",
    "watch": "Show progress until the object is ready, stalled or waiting for you; the exit status says which.",
    "explain": "Say which revision is active, why this candidate and no other, what is in the way, and what to do.",
    "logs": "Print the logs of the Jobs and servers of an object; those of the operator are in its own namespace.",
    "report": "Write all measurements and the reasons for the selection as a document.",
    "compare": "Compare two objects; figures are shown only if they were measured alike.",
    "approve": "Let a candidate serve that passed, where spec.selection.approval is Manual; its servers then start.",
    "retry": (
        "Run failed Jobs again, measure again what missed a limit, or roll out again what a soak undid; the active"
        " revision serves meanwhile."
    ),
    "history": "List the revisions that served, to which one can go back.",
    "rollback": (
        "Serve a revision that served before, without a soak, until you clear that; on a single GPU nothing answers"
        " while its server starts."
    ),
    "eject": "Write the server of an object as plain files, which run without the operator.",
    "update-images": (
        "List the objects that keep other images than the installation has; those that you name take these: they are"
        " measured again, and their servers replaced."
    ),
}
"""What each command does, by its name, in the order in which a user meets them."""
