//! A module in Rust, without crates and without libraries to link against.
//!
//!     rustc --edition 2021 -O --crate-type cdylib -o libTally.so tally.rs
#[macro_use]
mod abi;

use abi::*;
use std::ffi::c_void;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicI64, AtomicPtr, Ordering::Relaxed};

// ------------------------------------------------------------------------ the boundary, once for all actions

/// The host's table. `activate` stores it before any action is called; it is valid for the life of the process.
static HOST: AtomicPtr<Host> = AtomicPtr::new(std::ptr::null_mut());

fn host() -> &'static Host {
    unsafe { &*HOST.load(Relaxed) }
}

/// The error of an action: a code (a short word for programs) and a message (a sentence for people).
struct Failure(&'static str, String);

/// A handle for the reply to a call. It is only a number, so it can be passed to another thread. A reply that comes too
/// late has no effect.
#[derive(Clone, Copy)]
struct Reply(Token);

impl Reply {
    /// Replies to the call. The host borrows the value until `resolve` returns, or the error until `reject` returns.
    fn send(self, outcome: Result<Value, Failure>) {
        match outcome {
            Ok(value) => unsafe { (host().resolve)(host(), self.0, &value) },
            Err(Failure(code, message)) => {
                let error = Error { code: Str::new(code), message: Str::new(&message), source: Str::new("") };
                unsafe { (host().reject)(host(), self.0, &error) }
            }
        };
    }
}

/// Runs the body of an action. A panic must not cross the boundary: it becomes the error of the call.
unsafe fn guarded(call: *const Call, arguments: *const Value, count: u32, body: fn(Reply, &[Value])) {
    let reply = Reply((*call).token);
    let arguments = if count == 0 { &[] } else { std::slice::from_raw_parts(arguments, count as usize) };
    if catch_unwind(|| body(reply, arguments)).is_err() {
        reply.send(Err(Failure("panicked", "The action panicked; see standard error.".into())));
    }
}

/// Makes an entry of the function table from a Rust function.
macro_rules! action {
    ($name:literal, $body:path) => {{
        unsafe extern "C" fn invoke(_: *mut c_void, call: *const Call, arguments: *const Value, count: u32) {
            guarded(call, arguments, count, $body)
        }
        Function { name: Str::new($name), invoke, data: std::ptr::null_mut() }
    }};
}

// ----------------------------------------------------------------------------------------------- the actions

/// Atomic, because actions run on any thread, several at a time.
static TOTAL: AtomicI64 = AtomicI64::new(0);

/// Tally/add: the host has checked the type and filled in the default.
fn add(reply: Reply, arguments: &[Value]) {
    let n = arguments[0].as_int().unwrap_or(1);
    let added = TOTAL.fetch_update(Relaxed, Relaxed, |total| total.checked_add(n));
    reply.send(match added {
        Ok(before) => Ok(Value::int(before + n)),
        Err(_) => Err(Failure("overflow", format!("The total plus {n} does not fit into 64 bits."))),
    });
}

/// Tally/reverse: asynchronous. The arguments are borrowed until this function returns, so the thread gets a copy.
fn reverse(reply: Reply, arguments: &[Value]) {
    let text = arguments[0].as_str().unwrap_or("").to_owned();
    std::thread::spawn(move || {
        let reversed: String = text.chars().rev().collect();
        reply.send(Ok(Value::string(&reversed)));
    });
}

/// Tally/greet: calls another module, and passes on the outcome of the call.
fn greet(reply: Reply, arguments: &[Value]) {
    unsafe extern "C" fn pass_on(data: *mut c_void, value: *const Value, error: *const Error) {
        let token = data as Token;
        // Either the value or the error is null. The other one is borrowed, and passed on unchanged.
        match error.is_null() {
            true => (host().resolve)(host(), token, value),
            false => (host().reject)(host(), token, error),
        };
    }
    let parameters = [Entry { key: Str::new("name"), value: arguments[0] }];
    let request = Request::action("Greeter", "greet", &parameters);
    // The token is the parent of the call, so that the host can detect endless recursion and circular waits.
    unsafe { (host().perform)(host(), reply.0, &request, pass_on, reply.0 as *mut c_void) }
}

/// @suspend: replies with the state for the module that replaces this one.
fn suspend(reply: Reply, _: &[Value]) {
    reply.send(Ok(Value::int(TOTAL.load(Relaxed))));
}

/// @resume: receives the state of the module that this one replaces.
fn resume(reply: Reply, arguments: &[Value]) {
    match arguments[0].as_int() {
        Some(total) => {
            TOTAL.store(total, Relaxed);
            reply.send(Ok(Value::NULL))
        }
        None => reply.send(Err(Failure("unknownState", "The state is not a number.".into()))),
    }
}

// ------------------------------------------------------------------------------------------- the description

manifest_file!("tally.json");

static FUNCTIONS: [Function; 5] = [
    action!("Tally/add", add),
    action!("Tally/reverse", reverse),
    action!("Tally/greet", greet),
    action!("@suspend", suspend),
    action!("@resume", resume),
];

static MODULE: Module = Module {
    magic: MAGIC,
    size: std::mem::size_of::<Module>() as u32,
    abi_major: MAJOR,
    abi_minor: MINOR,
    toolchain: Str::new(""),
    manifest: SEAL.manifest(),
    functions: FUNCTIONS.as_ptr(),
    function_count: FUNCTIONS.len() as u64,
    factories: std::ptr::null(),
    factory_count: 0,
    data: std::ptr::null_mut(),
    activate: Some(activate),
    deactivate: None,
    get_extension: None,
};

unsafe extern "C" fn activate(_: *mut c_void, table: *const Host) -> i32 {
    HOST.store(table.cast_mut(), Relaxed);
    let log = (host().get_extension)(host(), Str::new(LOG_EXTENSION)).cast::<Log>();
    if let Some(log) = log.as_ref() {
        (log.write)(host(), 0, LOG_INFO, Str::new("Tally is ready."));
    }
    0
}

#[no_mangle]
pub extern "C" fn plugin_module_entry() -> *const Module {
    &MODULE
}
