/// The files of a new module in Rust, which `cargo` builds. It needs no other packages.
enum RustTemplate {
    /// - Parameter declarations: The text of `abi.rs`.
    static func files(_ name: ModuleName, declarations: String) -> [(path: String, text: String)] {
        [
            ("Cargo.toml", package(name)),
            ("README.md", readme(name)),
            (".gitignore", "target/\n"),
            ("src/lib.rs", source(name)),
            ("src/abi.rs", declarations),
            ("src/\(name.text).json", ManifestTemplate.text(name)),
            ("tests/host.rs", test(name)),
        ]
    }

    private static func package(_ name: ModuleName) -> String {
        """
        [package]
        name = "\(name.text.lowercased())"
        version = "0.1.0"
        edition = "2021"
        publish = false

        [lib]
        name = "\(name.text)"
        crate-type = ["cdylib"]

        """
    }

    private static func readme(_ name: ModuleName) -> String {
        let library = "target/release/lib\(name.text).so"
        return ReadmeTemplate.text(
            name,
            [
                ("cargo test", "builds it, checks it in a host, and calls it"),
                ("cargo build --release", "builds it for installation"),
                ("pluginhost check \(library)", "checks it before you ship it"),
                ("install -D -m 755 -t plugins \(library)", "installs it in a plugins folder"),
                ("pluginhost call \(name.text) greet name=Ada", "calls it"),
            ])
    }

    private static func source(_ name: ModuleName) -> String {
        #"""
        #![allow(non_snake_case)] // The name of the library.

        #[macro_use]
        mod abi;

        use abi::*;
        use std::ffi::c_void;
        use std::panic::catch_unwind;
        use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

        manifest_file!("\#(name.text).json");

        /// The host's table. `activate` stores it before any action is called; it is valid for the life of the process.
        static HOST: AtomicPtr<Host> = AtomicPtr::new(std::ptr::null_mut());

        /// The host has checked that there is one parameter, a string. No panic may cross the boundary.
        unsafe extern "C" fn greet(_: *mut c_void, call: *const Call, arguments: *const Value, _: u32) {
            let host = &*HOST.load(Relaxed);
            let name = (*arguments).as_str().unwrap_or("");
            match catch_unwind(|| format!("Hello, {name}!")) {
                Ok(text) => (host.resolve)(host, (*call).token, &Value::string(&text)),
                Err(_) => {
                    let (code, message) = (Str::new("panicked"), Str::new("The action panicked; see standard error."));
                    (host.reject)(host, (*call).token, &Error { code, message, source: Str::new("") })
                }
            };
        }

        unsafe extern "C" fn activate(_: *mut c_void, table: *const Host) -> i32 {
            HOST.store(table.cast_mut(), Relaxed);
            0
        }

        static FUNCTIONS: [Function; 1] =
            [Function { name: Str::new("\#(name.text)/greet"), invoke: greet, data: std::ptr::null_mut() }];

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

        #[no_mangle]
        pub extern "C" fn plugin_module_entry() -> *const Module {
            &MODULE
        }

        """#
    }

    private static func test(_ name: ModuleName) -> String {
        #"""
        //! Loads the built library in a host: the program `pluginhost`, or the one that the variable PLUGINHOST names.
        use std::path::PathBuf;
        use std::process::Command;

        /// A folder with a copy of the library. Cargo does not build it for tests, which are not linked to it.
        fn plugins(name: &str) -> PathBuf {
            let temporary = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
            let target = temporary.parent().unwrap();
            let mut build = Command::new(env!("CARGO"));
            build.args(["build", "--quiet", "--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);
            assert!(build.arg("--target-dir").arg(target).status().unwrap().success());
            let folder = temporary.join(name);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::copy(target.join("debug/lib\#(name.text).so"), folder.join("lib\#(name.text).so")).unwrap();
            folder
        }

        /// Runs the host in a folder with the library, and returns what it prints.
        fn pluginhost(folder: &PathBuf, arguments: &[&str]) -> String {
            let program = std::env::var("PLUGINHOST").unwrap_or("pluginhost".into());
            let output = Command::new(program).args(arguments).current_dir(folder).output().expect("pluginhost runs");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
            text
        }

        #[test]
        fn it_greets_by_name() {
            let call = ["call", "--plugins", ".", "\#(name.text)", "greet", "name=Ada"];
            assert_eq!(pluginhost(&plugins("greets"), &call).trim_end(), "Hello, Ada!");
        }

        #[test]
        fn it_passes_the_checks() {
            pluginhost(&plugins("checks"), &["check", "./lib\#(name.text).so"]);
        }

        """#
    }
}
