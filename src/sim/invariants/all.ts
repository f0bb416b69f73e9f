/** Every claim that is checked while a world runs, in the order in which they are asked. */
import { mailboxesAreBounded, nothingCrashes, supervisorsGiveUpInTime, theDeadDoNotMove } from './actorClaims.ts';
import { deletionComesLast, phasesOnlyGoForward, statusReachesItsPod } from './apiClaims.ts';
import { journalIsReadInBounds, onlyVolumesAreCounted, programsAreAskedOfTheirs } from './besideClaims.ts';
import { certificatesAreRenewed, pairsAreWhole, requestsAreFew, secretsAreKept } from './certificateClaims.ts';
import { groupsComeFirst, nothingAtWorkIsKilled } from './cgroupClaims.ts';
import type { Checker } from './checker.ts';
import { cpusAreGivenOnce } from './cpuClaims.ts';
import { devicesAreForWhoFits, devicesAreNotShared, devicesAreRefusedForReason, devicesComeOfTheirPlugin } from './deviceClaims.ts';
import { driversAreHeldToTheirOrder, publishedFirst } from './driverClaims.ts';
import { apiHoldsTogether, nothingWithoutRights, profilesAreTakenAlone } from './edgeClaims.ts';
import { hooksAreWaitedFor, hooksComeFirst } from './hookClaims.ts';
import { imagesStay } from './imageClaims.ts';
import { nodeKillsAreToldOnce } from './kernelClaims.ts';
import { logsAreKept } from './logClaims.ts';
import { claimsComeFirst, pullsHaveTheirKeys } from './namedClaims.ts';
import { envIsOfItsObjects, volumesComeFirst } from './objectClaims.ts';
import { attemptsGrow, crashLoopsAreSlow, graceIsKept, nobodyIsStoppedUnheard, onePodPerName } from './podClaims.ts';
import { endsAreHeeded } from './restartClaims.ts';
import {
  healthyIsLeftAlone,
  nothingStartsWhileStopping,
  oneActPerPod,
  oneRunningPerName,
  oneSandboxInUse,
  podDirStays,
} from './runtimeClaims.ts';
import { nobodyGoesForNothing, usersAreNotShared } from './shareClaims.ts';
import { incarnationsGrow, livesOnlyGoForward, nobodyIsEvictedForNothing, versionGrows } from './statusClaims.ts';
import { partsAreBound } from './subPathClaims.ts';

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
    nodeKillsAreToldOnce(),
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
  ];
}
