package faultdisk

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Signatures of the C functions of a VFS and of a file, as the translated SQLite calls them.
type (
	openFunc       = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	deleteFunc     = func(tls *libc.TLS, vfs, name uintptr, syncDir int32) int32
	accessFunc     = func(tls *libc.TLS, vfs, name uintptr, flags int32, out uintptr) int32
	closeFunc      = func(tls *libc.TLS, file uintptr) int32
	transferFunc   = func(tls *libc.TLS, file, buf uintptr, n int32, off int64) int32
	truncateFunc   = func(tls *libc.TLS, file uintptr, size int64) int32
	numberFunc     = func(tls *libc.TLS, file uintptr, n int32) int32
	pointerFunc    = func(tls *libc.TLS, file, out uintptr) int32
	controlFunc    = func(tls *libc.TLS, file uintptr, op int32, arg uintptr) int32
	shmMapFunc     = func(tls *libc.TLS, file uintptr, page, size, extend int32, out uintptr) int32
	shmLockFunc    = func(tls *libc.TLS, file uintptr, offset, n, flags int32) int32
	shmBarrierFunc = func(tls *libc.TLS, file uintptr)
)

// at converts the address of C memory. The Go runtime does not move or free that memory.
func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// function returns the Go function behind a C function pointer.
func function[F any](pointer uintptr) F { return *(*F)(unsafe.Pointer(&pointer)) }

// pointer returns the C function pointer of a Go function, which must not be a closure: C memory does not keep it alive.
func pointer[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

// A handle is an open file of a Disk in C memory; the handle of SQLite's own VFS follows it.
type handle struct {
	methods uintptr // sqlite3_file.pMethods: first, because SQLite reads it
	id      uintptr // key of openFiles
}

const handleSize = unsafe.Sizeof(handle{})

var (
	native  uintptr // sqlite3_vfs of SQLite
	methods uintptr // sqlite3_io_methods of a recorded file

	registry  sync.Mutex
	disks     = map[string]*Disk{} // by directory
	openFiles = map[uintptr]*openFile{}
	lastID    uintptr
)

func init() {
	if err := register(); err != nil {
		panic(err)
	}
}

// register makes our VFS SQLite's default. It copies SQLite's own and replaces what concerns files.
func register() error {
	tls := libc.NewTLS()
	native = lib.Xsqlite3_vfs_find(tls, 0)
	if native == 0 {
		return fmt.Errorf("faultdisk: SQLite has no VFS")
	}
	name, err := libc.CString("faultdisk")
	if err != nil {
		return err
	}
	ours := libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(lib.Tsqlite3_vfs{})))
	methods = libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(lib.Tsqlite3_io_methods{})))
	if ours == 0 || methods == 0 {
		return fmt.Errorf("faultdisk: out of memory")
	}
	v := at[lib.Tsqlite3_vfs](ours)
	*v = *at[lib.Tsqlite3_vfs](native)
	v.FpNext, v.FzName = 0, name
	v.FszOsFile += int32(handleSize)
	v.FxOpen = pointer[openFunc](open)
	v.FxDelete = pointer[deleteFunc](remove)
	v.FxAccess = pointer[accessFunc](access)
	// SQLite's own VFS gets its own pointer in these calls; the others do not look at theirs.
	m := at[lib.Tsqlite3_io_methods](methods)
	m.FiVersion = 2 // 3 would add memory-mapped reads
	m.FxClose = pointer[closeFunc](closeFile)
	m.FxRead = pointer[transferFunc](read)
	m.FxWrite = pointer[transferFunc](write)
	m.FxTruncate = pointer[truncateFunc](truncate)
	m.FxSync = pointer[numberFunc](syncFile)
	m.FxFileSize = pointer[pointerFunc](fileSize)
	m.FxLock = pointer[numberFunc](lock)
	m.FxUnlock = pointer[numberFunc](unlock)
	m.FxCheckReservedLock = pointer[pointerFunc](checkReservedLock)
	m.FxFileControl = pointer[controlFunc](fileControl)
	m.FxSectorSize = pointer[closeFunc](sectorSize)
	m.FxDeviceCharacteristics = pointer[closeFunc](deviceCharacteristics)
	m.FxShmMap = pointer[shmMapFunc](shmMap)
	m.FxShmLock = pointer[shmLockFunc](shmLock)
	m.FxShmBarrier = pointer[shmBarrierFunc](shmBarrier)
	m.FxShmUnmap = pointer[numberFunc](shmUnmap)
	if rc := lib.Xsqlite3_vfs_register(tls, ours, 1); rc != lib.SQLITE_OK {
		return fmt.Errorf("faultdisk: register VFS: code %d", rc)
	}
	return nil
}

// diskOf returns the Disk that a file belongs to, or nil, and the file's name on it.
func diskOf(name uintptr) (*Disk, string) {
	if name == 0 {
		return nil, "" // a temporary file
	}
	path := libc.GoString(name)
	registry.Lock()
	defer registry.Unlock()
	return disks[filepath.Dir(path)], filepath.Base(path)
}

func nativeVFS() *lib.Tsqlite3_vfs { return at[lib.Tsqlite3_vfs](native) }

// open opens a file. A file that is on no Disk is left to SQLite's own VFS from then on.
func open(tls *libc.TLS, _, name, file uintptr, flags int32, outFlags uintptr) int32 {
	inner := function[openFunc](nativeVFS().FxOpen)
	d, base := diskOf(name)
	if d == nil {
		return inner(tls, native, name, file, flags, outFlags)
	}
	h := at[handle](file)
	*h = handle{} // no methods: SQLite does not close it if open fails
	if rc := d.begin(Open, base); rc != lib.SQLITE_OK {
		return rc
	}
	if rc := inner(tls, native, name, file+handleSize, flags, outFlags); rc != lib.SQLITE_OK {
		return rc
	}
	f := d.opened(base, flags)
	registry.Lock()
	lastID++
	openFiles[lastID] = f
	h.methods, h.id = methods, lastID
	registry.Unlock()
	return lib.SQLITE_OK
}

func remove(tls *libc.TLS, _, name uintptr, syncDir int32) int32 {
	d, base := diskOf(name)
	if d != nil {
		if rc := d.begin(Delete, base); rc != lib.SQLITE_OK {
			return rc
		}
		d.removed(base, syncDir != 0)
	}
	return function[deleteFunc](nativeVFS().FxDelete)(tls, native, name, syncDir)
}

func access(tls *libc.TLS, _, name uintptr, flags int32, out uintptr) int32 {
	if d, _ := diskOf(name); d != nil && d.off() {
		return lib.SQLITE_IOERR_ACCESS
	}
	return function[accessFunc](nativeVFS().FxAccess)(tls, native, name, flags, out)
}

// isJournal reports whether SQLite syncs the directory with the first sync of a new file that is opened with the flags.
func isJournal(flags int32) bool {
	return flags&(lib.SQLITE_OPEN_MAIN_JOURNAL|lib.SQLITE_OPEN_SUPER_JOURNAL|lib.SQLITE_OPEN_WAL) != 0
}

// isShared reports whether a file is the index of a WAL, which SQLite makes anew after a crash.
func isShared(name string) bool { return strings.HasSuffix(name, "-shm") }
