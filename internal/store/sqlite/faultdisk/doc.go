// Package faultdisk is a disk that loses power and fails, under the real SQLite driver. Tests only.
//
//	SQLite ──► our VFS ──► a file of a Disk's directory? ──► recorded (writes since the last sync, entries of the directory)
//	                │                                    └─► fails, or cuts the power, if its turn has come
//	                └────► SQLite's own VFS: the real file, locks and shared memory
//
// Importing the package registers the VFS as SQLite's default, so the program under test needs no change. Files outside the
// directories of Disks go to SQLite's own VFS.
//
// What survives a cut is what the rules of POSIX promise and no more: contents up to the last sync of the file, and entries of
// the directory up to its last sync. Of the rest the Disk keeps nothing, everything, a beginning, single writes, or single
// sectors of writes, as Survival says. A failed sync loses what it should have written, as on Linux: the next sync does not write it.
//
// The Disk does not really sync files. Reads come from the real file, which has everything that was written. Files that are not
// SQLite's (key ring, lock file) are not recorded; a cut copies them as they are.
package faultdisk
