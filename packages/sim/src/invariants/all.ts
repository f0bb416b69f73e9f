/** Every invariant that is checked while a world runs, in the order in which they are asked. */

import { cpusAreGivenOnce } from './allocation/cpuInvariants.ts';
import { devicesAreNotShared, devicesAreRefusedForReason, devicesComeOfTheirPlugin } from './allocation/deviceInvariants.ts';
import { topologyCheckers } from './allocation/topologyInvariants.ts';
import { deletionComesLast, noPodIsOverlooked, phasesOnlyGoForward, statusReachesItsPod } from './api/apiInvariants.ts';
import { certificatesAreRenewed, pairsAreWhole, requestsAreFew, secretsAreKept } from './api/certificateInvariants.ts';
import { apiHoldsTogether, nothingWithoutRights, profilesAreTakenAlone } from './api/edgeInvariants.ts';
import { identitiesAreWhole } from './api/identityInvariants.ts';
import { logsAreKept } from './api/logInvariants.ts';
import { envIsOfItsObjects, volumesComeFirst } from './api/objectInvariants.ts';
import type { Checker } from './checker.ts';
import { journalIsReadInBounds, onlyVolumesAreCounted, programsAreAskedOfTheirs } from './node/besideInvariants.ts';
import { groupCheckers } from './node/cgroupInvariants.ts';
import { driversAreHeldToTheirOrder, grownFirst, oneNodeWrites, publishedFirst } from './node/driverInvariants.ts';
import { ownObjectGoesForward, rulesAreMadeOnce } from './node/hostInvariants.ts';
import { nodeKillsAreReportedOnce } from './node/kernelLogInvariants.ts';
import { nodesStandOnTheirSettings, startsAreRefusedForReason } from './node/kernelSettingInvariants.ts';
import { nobodyGoesForNothing, usersAreNotShared } from './node/shareInvariants.ts';
import { nobodyGoesForNoShutdown, shutdownsWaitForPods } from './node/shutdownInvariants.ts';
import { hooksAreWaitedFor, hooksComeFirst } from './pods/hookInvariants.ts';
import { claimsComeFirst, pullsHaveTheirKeys } from './pods/namedInvariants.ts';
import { networkCheckers } from './pods/networkInvariants.ts';
import { attemptsGrow, crashLoopsAreSlow, graceIsKept, nobodyIsStoppedUnheard, onePodPerName } from './pods/podInvariants.ts';
import { claimCheckers } from './pods/resourceClaimInvariants.ts';
import { allRestartTogether, askedRestartsHappen, endsAreHeeded } from './pods/restartInvariants.ts';
import { incarnationsGrow, livesOnlyGoForward, versionGrows } from './pods/statusInvariants.ts';
import { partsAreBound } from './pods/subPathInvariants.ts';
import { mailboxesAreBounded, nothingCrashes, sleepersGoOn, supervisorsGiveUpInTime, theDeadDoNotMove } from './runtime/actorInvariants.ts';
import { evictionCheckers } from './runtime/diskInvariants.ts';
import { imagesStay } from './runtime/imageInvariants.ts';
import {
  healthyIsLeftAlone,
  nothingStartsWhileStopping,
  oneActPerPod,
  oneRunningPerName,
  oneSandboxInUse,
  podDirStays,
} from './runtime/runtimeInvariants.ts';

export function allCheckers(): Checker[] {
  return [
    oneRunningPerName(),
    oneSandboxInUse(),
    nothingStartsWhileStopping(),
    oneActPerPod(),
    healthyIsLeftAlone(),
    podDirStays(),
    versionGrows(),
    livesOnlyGoForward(),
    ...evictionCheckers(),
    usersAreNotShared(),
    nobodyGoesForNothing(),
    endsAreHeeded(),
    allRestartTogether(),
    askedRestartsHappen(),
    claimsComeFirst(),
    pullsHaveTheirKeys(),
    imagesStay(),
    mailboxesAreBounded(),
    incarnationsGrow(),
    nothingCrashes(),
    supervisorsGiveUpInTime(),
    theDeadDoNotMove(),
    sleepersGoOn(),
    nobodyIsStoppedUnheard(),
    graceIsKept(),
    onePodPerName(),
    attemptsGrow(),
    crashLoopsAreSlow(),
    statusReachesItsPod(),
    deletionComesLast(),
    phasesOnlyGoForward(),
    noPodIsOverlooked(),
    rulesAreMadeOnce(),
    ownObjectGoesForward(),
    nodesStandOnTheirSettings(),
    startsAreRefusedForReason(),
    volumesComeFirst(),
    envIsOfItsObjects(),
    hooksComeFirst(),
    hooksAreWaitedFor(),
    partsAreBound(),
    certificatesAreRenewed(),
    pairsAreWhole(),
    secretsAreKept(),
    requestsAreFew(),
    nothingWithoutRights(),
    apiHoldsTogether(),
    profilesAreTakenAlone(),
    nodeKillsAreReportedOnce(),
    driversAreHeldToTheirOrder(),
    publishedFirst(),
    grownFirst(),
    oneNodeWrites(),
    programsAreAskedOfTheirs(),
    onlyVolumesAreCounted(),
    journalIsReadInBounds(),
    logsAreKept(),
    ...groupCheckers(),
    devicesAreNotShared(),
    devicesComeOfTheirPlugin(),
    devicesAreRefusedForReason(),
    cpusAreGivenOnce(),
    shutdownsWaitForPods(),
    nobodyGoesForNoShutdown(),
    ...networkCheckers(),
    ...claimCheckers(),
    ...topologyCheckers(),
    identitiesAreWhole(),
  ];
}
