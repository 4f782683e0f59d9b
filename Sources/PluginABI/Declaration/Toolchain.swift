/// The toolchain that compiles this code. Host and module compare it up to the minor version: compilers of the same
/// minor version agree on everything that two pieces of code in one process share.
package enum Toolchain {
    package static var current: String {
        #if compiler(>=7.0)
            "swift 7"
        #elseif compiler(>=6.9)
            "swift 6.9"
        #elseif compiler(>=6.8)
            "swift 6.8"
        #elseif compiler(>=6.7)
            "swift 6.7"
        #elseif compiler(>=6.6)
            "swift 6.6"
        #elseif compiler(>=6.5)
            "swift 6.5"
        #elseif compiler(>=6.4)
            "swift 6.4"
        #else
            "swift 6.3"
        #endif
    }
}
