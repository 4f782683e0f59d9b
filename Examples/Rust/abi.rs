//! The parts of `plugin_abi.h`, version 1.0, that a module needs, declared in Rust. The header states from which
//! threads each function may be called, and how long data lives. The assertions at the end are those of the header.
#![allow(dead_code)]

use std::ffi::c_void;
use std::mem::{offset_of, size_of};

pub const MAGIC: u64 = 0x5453_4F48_4755_4C50;
pub const MAJOR: u16 = 1;
pub const MINOR: u16 = 0;

pub const SEAL_MAGIC: u64 = 0x4C41_4553_4755_4C50;

pub const KIND_NULL: u32 = 0;
pub const KIND_BOOL: u32 = 1;
pub const KIND_INT: u32 = 2;
pub const KIND_DOUBLE: u32 = 3;
pub const KIND_STRING: u32 = 4;
pub const KIND_BYTES: u32 = 5;
pub const KIND_LIST: u32 = 6;
pub const KIND_MAP: u32 = 7;
pub const KIND_OBJECT: u32 = 8;
pub const KIND_NONE: u32 = u32::MAX;

pub const CALL_REMOTE: u32 = 1;
pub const CALL_IN_PLACE: u32 = 2;

pub const ADDRESS_ACTION: u32 = 0;
pub const ADDRESS_URL: u32 = 1;
pub const ADDRESS_OBJECT: u32 = 2;
pub const ADDRESS_SERVICE: u32 = 3;
pub const ADDRESS_EVENT: u32 = 4;
pub const ADDRESS_BOUND: u32 = 5;
pub const ADDRESS_CHAIN: u32 = 6;

pub const LOG_EXTENSION: &str = "pluginhost.log/1";
pub const LOG_INFO: u32 = 1;

pub type Token = u64;
pub type Object = u64;

/// A string as it crosses the boundary: borrowed, valid UTF-8, not NUL-terminated.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Str {
    bytes: *const u8,
    count: u64,
}

impl Str {
    /// Borrows `text`. The caller must keep `text` alive for as long as the receiver may read it.
    pub const fn new(text: &str) -> Str {
        Str { bytes: text.as_ptr(), count: text.len() as u64 }
    }

    /// Returns the text. The host has checked that it is valid UTF-8.
    pub fn as_str(&self) -> &str {
        match self.count {
            0 => "", // The pointer may be null.
            count => unsafe { std::str::from_utf8_unchecked(std::slice::from_raw_parts(self.bytes, count as usize)) },
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union Payload {
    pub boolean: u8,
    pub integer: i64,
    pub real: f64,
    pub string: *const u8,
    pub list: *const Value,
    pub map: *const Entry,
    pub object: Object,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Value {
    pub kind: u32,
    pub count: u32,
    pub payload: Payload,
}

impl Value {
    pub const NULL: Value = Value { kind: KIND_NULL, count: 0, payload: Payload { integer: 0 } };

    pub const fn int(integer: i64) -> Value {
        Value { kind: KIND_INT, count: 0, payload: Payload { integer } }
    }

    /// Borrows `text`, which must live until the function that the value is passed to has returned.
    pub const fn string(text: &str) -> Value {
        Value { kind: KIND_STRING, count: text.len() as u32, payload: Payload { string: text.as_ptr() } }
    }

    pub fn as_int(&self) -> Option<i64> {
        (self.kind == KIND_INT).then(|| unsafe { self.payload.integer })
    }

    /// Returns the text of a string argument. The host has checked that it is valid UTF-8. It is borrowed until the
    /// action returns.
    pub fn as_str(&self) -> Option<&str> {
        (self.kind == KIND_STRING).then(|| unsafe {
            match self.count {
                0 => "", // The pointer may be null.
                count => std::str::from_utf8_unchecked(std::slice::from_raw_parts(self.payload.string, count as usize)),
            }
        })
    }
}

impl Value {
    /// The entries of a map, such as the rest of an action's parameters. They live as long as the arguments do.
    pub fn as_map(&self) -> Option<&[Entry]> {
        (self.kind == KIND_MAP).then(|| unsafe {
            match self.count {
                0 => &[][..], // The pointer may be null.
                count => std::slice::from_raw_parts(self.payload.map, count as usize),
            }
        })
    }

    /// Returns the value of a key of a map. If the key occurs more than once, the last entry counts.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_map()?.iter().rev().find(|entry| entry.key.as_str() == key).map(|entry| &entry.value)
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Entry {
    pub key: Str,
    pub value: Value,
}

#[repr(C)]
pub struct Error {
    pub code: Str,
    pub message: Str,
    pub source: Str,
}

#[repr(C)]
pub struct Call {
    pub size: u32,
    pub flags: u32,
    pub token: Token,
    pub instance: *mut c_void,
    pub deadline: i64,
    /// Null without CALL_IN_PLACE. With it, the action may write a null, bool, int or double here instead of calling
    /// `resolve`.
    pub result: *mut Value,
}

pub type Invoke = unsafe extern "C" fn(*mut c_void, *const Call, *const Value, u32);

#[repr(C)]
pub struct Function {
    pub name: Str,
    pub invoke: Invoke,
    pub data: *mut c_void,
}

#[repr(C)]
pub struct Module {
    pub magic: u64,
    pub size: u32,
    pub abi_major: u16,
    pub abi_minor: u16,
    pub toolchain: Str,
    pub manifest: Str,
    pub functions: *const Function,
    pub function_count: u64,
    pub factories: *const c_void,
    pub factory_count: u64,
    pub data: *mut c_void,
    pub activate: Option<unsafe extern "C" fn(*mut c_void, *const Host) -> i32>,
    pub deactivate: Option<unsafe extern "C" fn(*mut c_void)>,
    pub get_extension: Option<unsafe extern "C" fn(*mut c_void, Str) -> *const c_void>,
}

/// The seal of a library: the section with its manifest, which tools read without running the module. It is declared in
/// `plugin_abi/manifest.h`, and made by `manifest_file!`.
#[repr(C)]
pub struct Seal<const N: usize> {
    magic: u64,
    size: u32,
    abi_major: u16,
    abi_minor: u16,
    manifest_count: u64,
    toolchain_count: u64,
    types_count: u64,
    manifest: [u8; N],
}

impl<const N: usize> Seal<N> {
    pub const fn new(manifest: &[u8; N]) -> Seal<N> {
        assert!(N > 0 && N <= 1 << 20, "A manifest has 1 byte to 1 MiB.");
        Seal {
            magic: SEAL_MAGIC,
            size: 40,
            abi_major: MAJOR,
            abi_minor: MINOR,
            manifest_count: N as u64,
            toolchain_count: 0,
            types_count: 0,
            manifest: *manifest,
        }
    }

    /// Returns the manifest, for the description.
    pub const fn manifest(&'static self) -> Str {
        Str { bytes: self.manifest.as_ptr(), count: N as u64 }
    }
}

/// Embeds a file with the manifest as `SEAL`; the description has `manifest: SEAL.manifest()`. The path is relative to
/// the source file. Use it once in a module. Cargo builds the module again when the file changes.
#[allow(unused_macros)]
macro_rules! manifest_file {
    ($file:literal) => {
        #[used]
        #[link_section = "pluginhost_manifest"]
        static SEAL: $crate::abi::Seal<{ include_bytes!($file).len() }> = $crate::abi::Seal::new(include_bytes!($file));
    };
}

// Sound: the description and its tables are never changed, and everything that they point to is static.
unsafe impl Sync for Function {}
unsafe impl Sync for Module {}

/// A call that the module makes. Borrowed until the function that it is passed to returns.
#[repr(C)]
pub struct Request {
    pub size: u32,
    pub address: u32,
    pub target: Str,
    pub action: Str,
    pub object: Object,
    pub parameters: *const Entry,
    pub parameter_count: u64,
    pub timeout: i64,
    pub flags: u32,
    pub method: u32,
    pub version: Str,
}

impl Request {
    /// Makes a request for an action of a target. An entry with an empty key is a parameter by position.
    pub fn action(target: &str, action: &str, parameters: &[Entry]) -> Request {
        Request {
            size: size_of::<Request>() as u32,
            address: ADDRESS_ACTION,
            target: Str::new(target),
            action: Str::new(action),
            object: 0,
            parameters: parameters.as_ptr(),
            parameter_count: parameters.len() as u64,
            timeout: 0,
            flags: 0,
            method: 0,
            version: Str::new(""),
        }
    }
}

/// Receives the outcome of a request, once: a value or an error, borrowed until the completion returns. The other
/// pointer is null.
pub type Completion = unsafe extern "C" fn(*mut c_void, *const Value, *const Error);

/// The host's functions. The first argument of each is the table. Each may be called from any thread.
#[repr(C)]
pub struct Host {
    pub size: u32,
    pub abi_major: u16,
    pub abi_minor: u16,
    implementation: *mut c_void,
    pub perform: unsafe extern "C" fn(*const Host, Token, *const Request, Completion, *mut c_void),
    pub call: unsafe extern "C" fn(*const Host, Token, *const Request, Completion, *mut c_void) -> Token,
    pub cancel: unsafe extern "C" fn(*const Host, Token),
    pub resolve: unsafe extern "C" fn(*const Host, Token, *const Value) -> i32,
    pub reject: unsafe extern "C" fn(*const Host, Token, *const Error) -> i32,
    pub on_cancel: unsafe extern "C" fn(*const Host, Token, unsafe extern "C" fn(*mut c_void, i32), *mut c_void),
    pub object_create:
        unsafe extern "C" fn(*const Host, Str, *mut c_void, Option<unsafe extern "C" fn(*mut c_void)>) -> Object,
    pub callback_create: unsafe extern "C" fn(
        *const Host,
        Invoke,
        *mut c_void,
        Option<unsafe extern "C" fn(*mut c_void)>,
        u32,
    ) -> Object,
    pub object_retain: unsafe extern "C" fn(*const Host, Object) -> i32,
    pub object_release: unsafe extern "C" fn(*const Host, Object) -> i32,
    pub get_extension: unsafe extern "C" fn(*const Host, Str) -> *const c_void,
}

#[repr(C)]
pub struct Log {
    pub size: u32,
    reserved: u32,
    pub write: unsafe extern "C" fn(*const Host, Token, u32, Str),
}

const _: () = assert!(size_of::<*const ()>() == 8);
const _: () = assert!(size_of::<Str>() == 16);
const _: () = assert!(size_of::<Value>() == 16);
const _: () = assert!(offset_of!(Value, payload) == 8);
const _: () = assert!(size_of::<Entry>() == 32);
const _: () = assert!(size_of::<Error>() == 48);
const _: () = assert!(offset_of!(Call, result) == 32);
const _: () = assert!(size_of::<Call>() == 40);
const _: () = assert!(size_of::<Function>() == 32);
const _: () = assert!(offset_of!(Module, toolchain) == 16);
const _: () = assert!(size_of::<Module>() == 112);
const _: () = assert!(size_of::<Seal<0>>() == 40);
const _: () = assert!(offset_of!(Seal<8>, manifest) == 40);
const _: () = assert!(size_of::<Request>() == 96);
const _: () = assert!(offset_of!(Request, version) == 80);
const _: () = assert!(offset_of!(Host, perform) == 16);
const _: () = assert!(size_of::<Host>() == 104);
const _: () = assert!(size_of::<Log>() == 16);
