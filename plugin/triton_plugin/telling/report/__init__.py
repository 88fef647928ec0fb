"""The report of one TritonDeployment: a document, and the forms it is written in."""
