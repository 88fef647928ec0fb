"""Container images of triton-operator, built by docker, podman or buildah, without any registry of our own.

`python3 -m hack.imagebuild build` makes the images and an archive of each that `ctr image import` or `docker load`
takes. The tag is a hash of the inputs, so unchanged inputs build nothing.
"""
