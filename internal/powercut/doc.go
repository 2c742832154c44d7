// Package powercut cuts the power under the whole server on SQLite, and makes its disk fail. It holds only tests.
//
//	life ──► a process with the real server on a faultdisk.Disk, under load from the test
//	cut  ──► at a random operation of the disk the process ends; what was synced survives, the rest does not, or in part
//	check ─► everything the server had acknowledged is there, the file is sound, the evidence verifies
//	…        the next life goes on with what survived; after some lives the last one delivers all that is pending
//
// In some series syncs fail, too, and lose what they should have written.
//
// scripts/powercut runs as many cuts as wanted. Each series of lives has a seed, which decides when the power is cut and what
// survives; GODWIT_POWERCUT_SEED repeats one, as far as the scheduler of the machine allows.
package powercut
