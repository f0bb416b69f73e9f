/** IP addresses of the node and of pods, by family. */

