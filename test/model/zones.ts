/**
 * Ahead of UTC by two hours and soon by none, as on the Antarctic station of Troll: put back over the end of a window of
 * six hours, which is at one o'clock. From the fourth day of a run by two again. Zones change no two times in a few days.
 */
export const changingClocks = [0, 7_200, 1_700_004_600, 0, 1_700_270_000, 7_200]
