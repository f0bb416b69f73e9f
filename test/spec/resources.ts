/** Who holds which trap of node resources and volumes. */
import type { Traps } from './table.ts';

export const RESOURCES_TRAPS = 75;

export const resources: Traps = {
  1: {
    says: 'a threshold of 0% or 100% is switched off, and is no mistake',
    tests: [['machines/eviction/thresholds.test.ts', 'of exactly 0% and 100% are off (trap 1)']],
  },
  2: {
    says: 'one threshold in the file drops all defaults',
    tests: [
      ['boot/config/config.test.ts', 'of evictionHard vanish when the file names any threshold, unless merging is asked for (trap 4)'],
    ],
  },
  3: {
    says: 'as much as the threshold is enough',
    tests: [
      ['machines/eviction/pass.test.ts', 'is met by less, not by as much'],
      ['machines/golden/reclaim/eviction.test.ts', 'met: as much as the threshold'],
    ],
  },
  4: {
    says: 'one pod is evicted at a time',
    tests: [
      ['integration/node/eviction.test.ts', 'resources trap 4: evicts one pod at a time, and looks again only when that one has ended'],
    ],
  },
  5: {
    says: 'nobody is evicted twice over one reading',
    tests: [['machines/eviction/pass.test.ts', 'is acted on once per reading (trap 5)']],
  },
  6: {
    says: 'a pressure shows at once and goes after its transition period',
    tests: [
      ['machines/eviction/pass.test.ts', 'a pressure is said for the transition period after it was last observed'],
      ['integration/node/eviction.test.ts', 'says so at once, and takes it back when the transition period has passed'],
    ],
  },
  7: {
    says: 'the grace of a soft threshold delays eviction only',
    tests: [
      [
        'machines/eviction/pass.test.ts',
        'that is soft is said at once and acted on when its grace is over; a break begins it anew (trap 7)',
      ],
      ['integration/node/eviction.test.ts', 'waits out the grace of a soft threshold, and gives what evictionMaxPodGracePeriod allows'],
    ],
  },
  8: {
    says: 'memory comes before disk',
    tests: [
      ['machines/eviction/pass.test.ts', 'about memory comes first, the others in their order'],
      ['integration/node/eviction.test.ts', 'evicts one pod after the other, who asked for least first, and never a static one'],
    ],
  },
  9: {
    says: 'a threshold that was met stays so until what is to be reclaimed is there too',
    tests: [['machines/eviction/pass.test.ts', 'once met stays so until what is to be reclaimed is there too (trap 9)']],
  },
  10: {
    says: 'critical pods are passed over',
    tests: [
      ['machines/eviction/rank.test.ts', "are static ones, mirrors, and those of the system's own priority"],
      ['integration/node/eviction.test.ts', 'evicts one pod after the other, who asked for least first, and never a static one'],
    ],
  },
  11: {
    says: 'a toleration lets pods in under want of memory alone',
    tests: [
      ['machines/eviction/rank.test.ts', 'for disk and processes refuses every other pod, whatever it tolerates'],
      ['integration/node/eviction.test.ts', 'lets in what has asked for memory or tolerates its want, and static pods'],
    ],
  },
  12: {
    says: 'what a volume holds is looked at now and then, not at once',
    tests: [
      [
        'integration/volumes/storageLimits.test.ts',
        'resources trap 12: to a volume with a limit is evicted at the next look, not at once; others are left alone',
      ],
    ],
  },
  13: {
    says: 'a pod is limited as a whole only where all of its containers are',
    tests: [
      ['machines/golden/allocation/cgroups/cgroups.test.ts', 'Burstable with a limit of memory on one of two (trap 13)'],
      ['integration/resources/cgroups.test.ts', 'trap 13: limits a pod as a whole only where all of its containers are limited'],
      [
        'e2e/node/cgroups.test.ts',
        'traps 13 and 14: runs a pod of each class in a group of its own with its values, and leaves none behind',
      ],
    ],
  },
  14: {
    says: 'the class Guaranteed has no group of its own',
    tests: [
      ['machines/golden/allocation/cgroups/cgroups.test.ts', 'a Guaranteed pod stands right below kubepods (trap 14)'],
      [
        'integration/resources/cgroups.test.ts',
        'traps 14 and 16: puts each pod into its group before its sandbox is made, one that is Guaranteed right below kubepods',
      ],
      [
        'e2e/node/cgroups.test.ts',
        'traps 13 and 14: runs a pod of each class in a group of its own with its values, and leaves none behind',
      ],
    ],
  },
  15: {
    says: 'names of systemd slices nest',
    tests: [
      ['machines/golden/allocation/cgroups/cgroups.test.ts', 'a Burstable pod: dashes of its UID are escaped, and slices nest (trap 15)'],
    ],
  },
  16: {
    says: 'pages that nobody asked for are limited to none, but not for the classes',
    tests: [
      ['machines/golden/allocation/cgroups/cgroups.test.ts', 'huge pages: what is asked for, and nothing of the other size (trap 16)'],
      [
        'machines/golden/allocation/cgroups/cgroups.test.ts',
        'the classes weigh what their pods ask for; pages are not limited there (trap 16)',
      ],
      [
        'integration/resources/cgroups.test.ts',
        'traps 14 and 16: puts each pod into its group before its sandbox is made, one that is Guaranteed right below kubepods',
      ],
    ],
  },
  17: {
    says: 'hard eviction is kept back from what is told, not from what is enforced',
    tests: [
      [
        'machines/golden/allocation/cgroups/cgroups.test.ts',
        'kubepods: the machine without what is reserved, eviction thresholds not taken off (trap 17)',
      ],
      [
        'integration/resources/cgroups.test.ts',
        'trap 17: what hard eviction defends is kept back from what is told, not from what is enforced',
      ],
    ],
  },
  18: {
    says: 'a limit below what is used is tried again',
    tests: [['integration/resources/cgroups.test.ts', 'trap 18: a limit below what is used is tried again each minute, and both is said']],
  },
  19: {
    says: 'the group of a pod stays while its volumes do',
    tests: [['integration/resources/cgroups.test.ts', 'trap 19: the group of a pod stays while its volumes do, with hardly any weight']],
  },
  20: {
    says: 'burstable scores stay between 3 and 999',
    tests: [['machines/pods/config/config.test.ts', 'scores by class, request and priority; a sidecar no higher than those it serves']],
  },
  21: {
    says: 'only whole CPUs are exclusive',
    tests: [
      ['machines/golden/allocation/cpus.test.ts', 'alone: 1500m share (trap 21)'],
      [
        'integration/resources/cpus.test.ts',
        'has the whole CPUs that it asks for alone, and no quota of time on them; 1500m share (trap 21)',
      ],
    ],
  },
  22: {
    says: 'a smaller shared set reaches running containers at the next look',
    tests: [
      [
        'integration/resources/cpus.test.ts',
        'is where a container that ran before is confined to at the next look, and not sooner (trap 22)',
      ],
    ],
  },
  23: {
    says: 'what init containers held is used again',
    tests: [
      ['machines/golden/allocation/cpus.test.ts', 'grant: what init containers held is used again (trap 23)'],
      ['integration/resources/cpus.test.ts', 'uses again what init containers held, and a sidecar keeps its own (trap 23)'],
    ],
  },
  24: {
    says: 'a restart keeps exclusive CPUs',
    tests: [
      ['integration/resources/cpus.test.ts', 'keeps its CPUs when it starts again, and they come back when its pod is gone (trap 24)'],
      ['integration/resources/cpus.test.ts', 'keeps its CPUs over a restart of the daemon, and of the CPU manager'],
      ['e2e/node/cpus.test.ts', 'keeps it over a restart of the daemon, and nothing starts anew'],
    ],
  },
  25: {
    says: 'another policy over an old state ends the node',
    tests: [
      ['machines/golden/allocation/cpus.test.ts', 'open: of policy none, under static (trap 25)'],
      ['boot/cpuState.test.ts', 'of another policy ends the start, with what to do (trap 25)'],
      ['integration/resources/cpus.test.ts', 'ends the CPU manager and in the end the node, with what to do'],
    ],
  },
  26: {
    says: 'checksums are over texts with names of types',
    tests: [
      ['machines/golden/allocation/cpus.test.ts', 'checksum: two containers of a pod (trap 26)'],
      ['machines/golden/allocation/cpus.test.ts', 'checksum: the older file, by ids of containers (trap 26)'],
    ],
  },
  27: {
    says: 'a dead plugin leaves its capacity for a while, then 0',
    tests: [
      [
        'integration/resources/devices.test.ts',
        'resources trap 27, boot trap 51: a dead plugin leaves its capacity for 5 minutes and nothing to give, then 0',
      ],
      ['machines/golden/allocation/devices.test.ts', 'inventory: its plugin is gone (trap 27)'],
    ],
  },
  28: {
    says: 'the socket is made anew at each start',
    tests: [
      [
        'integration/resources/devices.test.ts',
        'resources trap 28: makes its socket anew at each start, removes what else is there, and plugins register again',
      ],
    ],
  },
  29: {
    says: 'a second registration replaces the first',
    tests: [
      [
        'integration/resources/devices.test.ts',
        'resources trap 29: a second registration takes the place of the first, whose end is about nothing',
      ],
    ],
  },
  30: {
    says: 'pods with devices are let in before their plugin is back',
    tests: [
      [
        'integration/resources/devices.test.ts',
        'resources trap 30: after a restart a pod with a device runs on before its plugin is back, and keeps it',
      ],
      ['machines/golden/allocation/devices.test.ts', 'plan: it has them, and runs, whatever became of the plugin (trap 30)'],
    ],
  },
  31: {
    says: 'images found at the start count as old',
    tests: [
      ['machines/golden/reclaim/imageGc.test.ts', 'found: at the first look all are old (trap 31)'],
      [
        'integration/node/imageGc.test.ts',
        'resources trap 31: removes what nobody uses and was there before, at once; what came later not before it is two minutes old',
      ],
    ],
  },
  32: {
    says: 'images of ended containers are in use',
    tests: [
      ['machines/golden/reclaim/imageGc.test.ts', 'used: by the id, of a container that has ended (trap 32)'],
      [
        'integration/node/imageGc.test.ts',
        'resources trap 32: keeps the image of a container that has ended, of a pod that is to run, and the sandbox image',
      ],
    ],
  },
  33: {
    says: 'one failure of the collection is no event',
    tests: [['integration/node/imageGc.test.ts', 'resources trap 33: is no event once, and one from the second time in a row on']],
  },
  34: {
    says: 'what was freed is the sum of what images say of their size',
    tests: [
      [
        'integration/node/imageGc.test.ts',
        'resources trap 34: stops when as much was freed as images say of their size, though the disk shows less',
      ],
    ],
  },
  35: {
    says: 'a name without a tag gets one and is not expanded',
    tests: [
      ['runtime/pure.test.ts', 'get :latest only when they have neither tag nor digest, and are not expanded'],
      ['runtime/images/images.test.ts', 'uses an image that is present, with :latest added, and says so'],
    ],
  },
  36: {
    says: 'a pull over the rate fails, and does not wait',
    tests: [['runtime/images/images.test.ts', 'fails a pull over the rate, as the registry limit asks']],
  },
  37: {
    says: 'the newest rotated log is not compressed',
    tests: [
      [
        'integration/node/logRotation.test.ts',
        'resources trap 37: the newest rotated one is not compressed, the others are, and there are as many as may be in all',
      ],
    ],
  },
  38: {
    says: 'a log that cannot be opened anew gets its name back',
    tests: [
      [
        'integration/node/logRotation.test.ts',
        'resources trap 38: leaves it its name and content; that is said once, others are rotated, and so is it when the runtime can',
      ],
    ],
  },
  39: {
    says: 'the newest dead container and the newest sandbox stay',
    tests: [
      ['machines/pods/dead.test.ts', 'trap 59: keeps the newest dead instance per container, removes the others oldest first'],
      ['machines/pods/dead.test.ts', 'removes sandboxes that are neither ready, nor used, nor the newest of a wanted pod'],
      ['cluster/pods/kubectl.test.ts', 'logs --previous: the run before'],
    ],
  },
  40: {
    says: 'rates come from two samples: here of requests at least one second apart, in the kubelet of every ten seconds',
    tests: [
      ['machines/kubeletApi/pure.test.ts', 'are a rate between two samples, and none where time or counter went back'],
      ['edge/https/pages.test.ts', 'sum up the node and its pods, with rates from the second look on'],
    ],
  },
  41: {
    says: 'a pod of which no container runs is in no statistics',
    tests: [
      [
        'machines/kubeletApi/pure.test.ts',
        'do not show containers that do not run, nor pods without one that does, nor without a ready sandbox (resources trap 41)',
      ],
    ],
  },
  42: {
    says: 'nothing is available where there is no limit: it is left out',
    tests: [['machines/kubeletApi/pure.test.ts', 'say nothing of what is available to a container without a limit (resources trap 42)']],
  },
  43: {
    says: 'volumes that nobody mounts are never set up, and may be missing',
    tests: [
      ['integration/volumes/volumes.test.ts', 'that no container mounts are never set up, whatever they name'],
      ['volumes/payload.test.ts', 'uses no volume that no container mounts, and names what cannot be decoded'],
    ],
  },
  44: {
    says: 'volumes that are attached wait for two words of the API',
    tests: [
      [
        'integration/volumes/csi.test.ts',
        'waits until the use was posted and the volume attached, and hands on what the attacher left (trap 44)',
      ],
    ],
  },
  45: {
    says: 'unmounts come before mounts, and one device at a time',
    tests: [
      [
        'integration/volumes/csi.test.ts',
        'is taken from one pod before it is given to the next: one thing at a time is done to a device (trap 45)',
      ],
    ],
  },
  46: {
    says: 'another operation does not wait for the back-off of the one before',
    tests: [['volumes/charts.test.ts', 'whose mount failed is unmounted at once when it is not wanted any more (trap 46)']],
  },
  47: {
    says: 'a driver that did not answer may have mounted all the same',
    tests: [
      ['integration/volumes/csi.test.ts', 'whose %s was not answered in time is undone with its pod, whatever became of it (trap 47)'],
    ],
  },
  48: {
    says: 'some refusals of a driver are final',
    tests: [
      ['integration/volumes/csi.test.ts', 'whose NodeStageVolume failed for good leaves nothing behind, and is tried again (traps 48, 49)'],
    ],
  },
  49: {
    says: 'the target is the driver’s to make',
    tests: [
      ['integration/volumes/csi.test.ts', 'whose NodeStageVolume failed for good leaves nothing behind, and is tried again (traps 48, 49)'],
    ],
  },
  50: {
    says: 'what is needed to take a volume down goes last',
    tests: [['integration/volumes/csi.test.ts', 'that cannot be unstaged keeps what is needed to take it down, until it can (trap 50)']],
  },
  51: {
    says: 'equal files are not written again',
    tests: [['volumes/atomicWriter.test.ts', 'of what is there already changes nothing (trap 51)']],
  },
  52: {
    says: 'only first path elements are links',
    tests: [['volumes/atomicWriter.test.ts', 'lays files out behind one link, nested ones below a link to their first directory']],
  },
  53: {
    says: 'config maps stand on the disk, the others in memory',
    tests: [
      ['volumes/objects.test.ts', 'stands on a tmpfs without swap, a config map on disk (trap 53)'],
      ['integration/volumes/volumes.test.ts', 'are set up before the sandbox, given to the containers, and taken down when they are gone'],
    ],
  },
  54: {
    says: 'what is mounted by a part stays what it was',
    tests: [
      ['e2e/pods/subPath.test.ts', 'is a directory or a file of it, is bound again at each start, and is found by the next daemon'],
      ['volumes/subPath.test.ts', 'follows what the path leads to now: a file that was replaced is bound anew'],
    ],
  },
  55: {
    says: 'a token is for its owner alone only where all containers have one user, or the pod has a group',
    tests: [
      ['volumes/objects.test.ts', 'is given to the group of its pod, the token readable to it (trap 55)'],
      ['volumes/payload.test.ts', 'gives a user to its volumes only when all its containers have the same'],
      ['volumes/payload.json', 'a token of several users'],
      ['volumes/payload.json', 'a token of the one user of all containers'],
    ],
  },
  56: {
    says: 'a token that cannot be renewed serves while it is good',
    tests: [
      [
        'integration/cluster/clusterObjects.test.ts',
        'that cannot be replaced serves on while it is good; then it is an error that heals by itself',
      ],
    ],
  },
  57: {
    says: 'files that cannot be given to the group fail no mount',
    tests: [
      [
        'volumes/objects.test.ts',
        'is given to the group of its pod, and a file system that does not allow it does not fail the mount (trap 57)',
      ],
    ],
  },
  58: {
    says: 'a root is as it should be with its group, its bits and setgid',
    tests: [
      [
        'volumes/mounter.test.ts',
        'is left as it is under OnRootMismatch where the root is as it should be, and is not where the setgid bit alone is missing (trap 58)',
      ],
    ],
  },
  59: {
    says: 'a hostPath without a type is not looked at, and parents of a file are not made',
    tests: [
      ['volumes/objects.test.ts', 'of type %j where there is %s: %s (trap 59)'],
      ['volumes/mounter.test.ts', 'are made with their mode; an existing file is left as it is, and parents of a file are not made'],
      ['machines/golden/volumes/volumeKinds.test.ts', 'hostPath: type FileOrCreate, below what is not there'],
    ],
  },
  60: {
    says: 'a part that leads out is refused, and the host is not described',
    tests: [
      ['volumes/subPath.test.ts', 'of what leads out is refused, and nothing is mounted'],
      ['volumes/subPath.test.ts', 'stays inside while a container swaps directories for links all the time'],
      ['e2e/pods/subPath.test.ts', 'is refused where it is %s, without a word of where it leads to, and given when that is over'],
    ],
  },
  61: {
    says: '/etc/hosts is written anew for each container, unless it mounts its own',
    tests: [
      ['integration/containers/hostsFile.test.ts', 'is written anew for each container that is created (resources trap 61)'],
      ['integration/containers/hostsFile.test.ts', 'is left to a container that mounts one of its own (resources trap 61)'],
    ],
  },
  62: {
    says: 'ClusterFirst on the host’s network is Default',
    tests: [['machines/golden/config/names.test.ts', 'policy ClusterFirst, host network: as the host (resources trap 62)']],
  },
  63: {
    says: 'search domains of the host stand behind those of the cluster and are cut from the end, which is said',
    tests: [
      ['machines/golden/config/names.test.ts', 'searches: ten of the host stand behind those of the cluster (resources trap 63)'],
      ['machines/golden/config/names.test.ts', 'searches: from the 33rd on they are left out, from the end (resources trap 63)'],
    ],
  },
  64: {
    says: 'sockets whose names begin with a dot are passed over',
    tests: [
      [
        'integration/volumes/csi.test.ts',
        'whose socket has a name with a dot in front, or is no socket, is not asked (trap 64); one in a folder below is',
      ],
    ],
  },
  65: {
    says: 'a name that is taken refuses a second socket',
    tests: [
      [
        'integration/volumes/csi.test.ts',
        'of a name that is taken is refused until it has a higher version or the other goes; one made anew is met anew (trap 65)',
      ],
    ],
  },
  66: {
    says: 'a pod that changes keeps the watches of what it still names',
    tests: [['machines/objects/objects.test.ts', 'that stay over an update of the pod keep their watch (trap 66)']],
  },
  67: {
    says: 'an immutable object is watched until it was seen',
    tests: [
      [
        'integration/cluster/clusterObjects.test.ts',
        'end when the object is immutable; a later pod is shown what stands there then (trap 67)',
      ],
      ['machines/objects/objects.test.ts', 'is watched no more once it is immutable; renewed, it says what it was until it is known anew'],
    ],
  },
  68: {
    says: 'nobody is driven out for what no room can mend',
    tests: [['integration/resources/preemption.test.ts', 'resources trap 68: is refused for what no room can mend, and nobody has to go']],
  },
  69: {
    says: 'one reason is told, those of room first',
    tests: [
      ['machines/golden/admission/admission.test.ts', 'selector: comes after resources'],
      ['machines/golden/admission/admission.test.ts', 'cpu: comes before memory'],
    ],
  },
  70: {
    says: 'nothing is deleted below a mount',
    tests: [
      ['volumes/atomicWriter.test.ts', 'follows no link and stops before anything that is mounted (trap 70)'],
      [
        'integration/volumes/volumes.test.ts',
        'takes down what belongs to nobody, but not before every source has spoken, and nothing below a mount it does not know',
      ],
    ],
  },
  71: {
    says: 'an empty list of volumes in use is not told before what is there was found',
    tests: [
      [
        'integration/volumes/csi.test.ts',
        'waits until the use was posted and the volume attached, and hands on what the attacher left (trap 44)',
      ],
    ],
  },
  72: {
    says: 'only burstable containers may swap',
    tests: [
      ['machines/golden/allocation/memoryControls.test.ts', '1.12 LimitedSwap: Guaranteed gets none (trap 72)'],
      ['machines/golden/allocation/memoryControls.test.ts', '1.12 LimitedSwap: BestEffort gets none (trap 72)'],
      ['e2e/pods/resize.test.ts', 'is given more and less while it runs, and is not started anew'],
    ],
  },
  73: {
    says: 'throttling is left out where it would be of no use',
    tests: [
      ['machines/golden/allocation/memoryControls.test.ts', '1.11 memory.high: not where it may use what it asks for (trap 73)'],
      ['machines/golden/allocation/memoryControls.test.ts', '1.11 memory.high: not where it asks for more than pods may use (trap 73)'],
    ],
  },
  74: {
    says: 'an empty group costs a shutdown no time',
    tests: [
      [
        'integration/node/nodeShutdown.test.ts',
        'gives each group its period, by priority, and goes on without pods that take longer (trap 74)',
      ],
    ],
  },
  75: {
    says: 'one of two forms ends a record about memory that ran out',
    tests: [
      ['machines/golden/runtime/oom.test.ts', "what the kernel's log says of memory that ran out is read as recorded (trap 75)"],
      ['integration/node/oomWatcher.test.ts', 'tells once that the node ran out of memory, and nothing of what has a limit of its own'],
    ],
  },
};
