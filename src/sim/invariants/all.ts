/** Every invariant that is checked while a world runs, in the order in which they are asked. */
import { mailboxesAreBounded, nothingCrashes, supervisorsGiveUpInTime, theDeadDoNotMove } from './actorInvariants.ts';
import { deletionComesLast, noPodIsOverlooked, phasesOnlyGoForward, statusReachesItsPod } from './apiInvariants.ts';
import { journalIsReadInBounds, onlyVolumesAreCounted, programsAreAskedOfTheirs } from './besideInvariants.ts';
import { certificatesAreRenewed, pairsAreWhole, requestsAreFew, secretsAreKept } from './certificateInvariants.ts';
import { groupsComeFirst, nothingAtWorkIsKilled } from './cgroupInvariants.ts';
import type { Checker } from './checker.ts';
import { cpusAreGivenOnce } from './cpuInvariants.ts';
import { devicesAreForWhoFits, devicesAreNotShared, devicesAreRefusedForReason, devicesComeOfTheirPlugin } from './deviceInvariants.ts';
import { driversAreHeldToTheirOrder, publishedFirst } from './driverInvariants.ts';
import { apiHoldsTogether, nothingWithoutRights, profilesAreTakenAlone } from './edgeInvariants.ts';
import { hooksAreWaitedFor, hooksComeFirst } from './hookInvariants.ts';
import { ownObjectGoesForward, rulesAreMadeOnce } from './hostInvariants.ts';
import { imagesStay } from './imageInvariants.ts';
import { nodeKillsAreReportedOnce } from './kernelLogInvariants.ts';
import { nodesStandOnTheirSettings, startsAreRefusedForReason } from './kernelSettingInvariants.ts';
import { logsAreKept } from './logInvariants.ts';
import { claimsComeFirst, pullsHaveTheirKeys } from './namedInvariants.ts';
import { envIsOfItsObjects, volumesComeFirst } from './objectInvariants.ts';
import { attemptsGrow, crashLoopsAreSlow, graceIsKept, nobodyIsStoppedUnheard, onePodPerName } from './podInvariants.ts';
import { endsAreHeeded } from './restartInvariants.ts';
import {
  healthyIsLeftAlone,
  nothingStartsWhileStopping,
  oneActPerPod,
  oneRunningPerName,
  oneSandboxInUse,
  podDirStays,
} from './runtimeInvariants.ts';
import { nobodyGoesForNothing, usersAreNotShared } from './shareInvariants.ts';
import { nobodyGoesForNoShutdown, shutdownsWaitForPods } from './shutdownInvariants.ts';
import { incarnationsGrow, livesOnlyGoForward, nobodyIsEvictedForNothing, versionGrows } from './statusInvariants.ts';
import { partsAreBound } from './subPathInvariants.ts';

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
    nobodyIsEvictedForNothing(),
    usersAreNotShared(),
    nobodyGoesForNothing(),
    endsAreHeeded(),
    claimsComeFirst(),
    pullsHaveTheirKeys(),
    imagesStay(),
    mailboxesAreBounded(),
    incarnationsGrow(),
    nothingCrashes(),
    supervisorsGiveUpInTime(),
    theDeadDoNotMove(),
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
    programsAreAskedOfTheirs(),
    onlyVolumesAreCounted(),
    journalIsReadInBounds(),
    logsAreKept(),
    groupsComeFirst(),
    nothingAtWorkIsKilled(),
    devicesAreNotShared(),
    devicesComeOfTheirPlugin(),
    devicesAreForWhoFits(),
    devicesAreRefusedForReason(),
    cpusAreGivenOnce(),
    shutdownsWaitForPods(),
    nobodyGoesForNoShutdown(),
  ];
}
