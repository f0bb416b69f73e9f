/** Host tools for file systems on block devices, each a line of a shell that runs as a helper. */

/** Makes the file system of device `$1`, mounted at `$2`, as large as its device. blkid(8) ends with 2 where there is none. */
export const GROW_SCRIPT = [
  'type=$(blkid -p -s TYPE -o value -- "$1")',
  'case $? in 0) ;; 2) exit 0 ;; *) echo "blkid cannot tell what is on $1" >&2; exit 1 ;; esac',
  'case $type in',
  'ext2|ext3|ext4) exec resize2fs -- "$1" ;;',
  'xfs) exec xfs_growfs -d "$2" ;;',
  'btrfs) exec btrfs filesystem resize max "$2" ;;',
  '*) echo "a file system of type $type, on $1, cannot be grown" >&2; exit 1 ;;',
  'esac',
].join('\n');
