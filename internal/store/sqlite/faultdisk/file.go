package faultdisk

import (
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// fileOf returns the recorded file of a handle, the native handle behind it, and the native methods.
func fileOf(file uintptr) (*openFile, uintptr, *lib.Tsqlite3_io_methods) {
	registry.Lock()
	f := openFiles[at[handle](file).id]
	registry.Unlock()
	inner := file + handleSize
	return f, inner, at[lib.Tsqlite3_io_methods](at[lib.Tsqlite3_file](inner).FpMethods)
}

func closeFile(tls *libc.TLS, file uintptr) int32 {
	_, inner, m := fileOf(file)
	registry.Lock()
	delete(openFiles, at[handle](file).id)
	registry.Unlock()
	return function[closeFunc](m.FxClose)(tls, inner)
}

func read(tls *libc.TLS, file, buf uintptr, n int32, off int64) int32 {
	f, inner, m := fileOf(file)
	if f.disk.off() {
		return lib.SQLITE_IOERR_READ
	}
	return function[transferFunc](m.FxRead)(tls, inner, buf, n, off)
}

func write(tls *libc.TLS, file, buf uintptr, n int32, off int64) int32 {
	f, inner, m := fileOf(file)
	data := unsafe.Slice(at[byte](buf), n)
	kept, rc := f.write(data, off)
	if kept > 0 {
		if nrc := function[transferFunc](m.FxWrite)(tls, inner, buf, int32(kept), off); nrc != lib.SQLITE_OK {
			return nrc
		}
	}
	return rc
}

func truncate(tls *libc.TLS, file uintptr, size int64) int32 {
	f, inner, m := fileOf(file)
	if rc := f.truncate(size); rc != lib.SQLITE_OK {
		return rc
	}
	return function[truncateFunc](m.FxTruncate)(tls, inner, size)
}

// syncFile records the sync only: the real file need not survive a real power failure.
func syncFile(_ *libc.TLS, file uintptr, _ int32) int32 {
	f, _, _ := fileOf(file)
	return f.sync()
}

func fileSize(tls *libc.TLS, file, out uintptr) int32 {
	f, inner, m := fileOf(file)
	if f.disk.off() {
		return lib.SQLITE_IOERR_FSTAT
	}
	return function[pointerFunc](m.FxFileSize)(tls, inner, out)
}

func lock(tls *libc.TLS, file uintptr, kind int32) int32 {
	f, inner, m := fileOf(file)
	if f.disk.off() {
		return lib.SQLITE_IOERR_LOCK
	}
	return function[numberFunc](m.FxLock)(tls, inner, kind)
}

func unlock(tls *libc.TLS, file uintptr, kind int32) int32 {
	_, inner, m := fileOf(file)
	return function[numberFunc](m.FxUnlock)(tls, inner, kind)
}

func checkReservedLock(tls *libc.TLS, file, out uintptr) int32 {
	_, inner, m := fileOf(file)
	return function[pointerFunc](m.FxCheckReservedLock)(tls, inner, out)
}

func fileControl(tls *libc.TLS, file uintptr, op int32, arg uintptr) int32 {
	_, inner, m := fileOf(file)
	return function[controlFunc](m.FxFileControl)(tls, inner, op, arg)
}

func sectorSize(tls *libc.TLS, file uintptr) int32 {
	_, inner, m := fileOf(file)
	return function[closeFunc](m.FxSectorSize)(tls, inner)
}

func deviceCharacteristics(tls *libc.TLS, file uintptr) int32 {
	_, inner, m := fileOf(file)
	return function[closeFunc](m.FxDeviceCharacteristics)(tls, inner)
}

// shmMap may fail like a write: it makes the shared file longer.
func shmMap(tls *libc.TLS, file uintptr, page, size, extend int32, out uintptr) int32 {
	f, inner, m := fileOf(file)
	if extend != 0 {
		if rc := f.disk.begin(Map, f.name); rc != lib.SQLITE_OK {
			return rc
		}
	}
	return function[shmMapFunc](m.FxShmMap)(tls, inner, page, size, extend, out)
}

func shmLock(tls *libc.TLS, file uintptr, offset, n, flags int32) int32 {
	_, inner, m := fileOf(file)
	return function[shmLockFunc](m.FxShmLock)(tls, inner, offset, n, flags)
}

func shmBarrier(tls *libc.TLS, file uintptr) {
	_, inner, m := fileOf(file)
	function[shmBarrierFunc](m.FxShmBarrier)(tls, inner)
}

func shmUnmap(tls *libc.TLS, file uintptr, remove int32) int32 {
	_, inner, m := fileOf(file)
	return function[numberFunc](m.FxShmUnmap)(tls, inner, remove)
}
