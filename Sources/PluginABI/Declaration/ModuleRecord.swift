/// A record in the section `plugin_modules`, through which a program finds a module that is linked into it.
///
/// A module that can be both a shared library and part of a program has both a record and an entry function:
///
///     @section("plugin_modules") @used
///     private let record: ModuleRecord = { Shop.export() }
///
///     #if !PLUGIN_LINKED_IN
///         @_cdecl("plugin_module_entry")
///         public func entry() -> UnsafePointer<plugin_module> { Shop.export() }
///     #endif
///
/// To link it into a program, compile it with `.define("PLUGIN_LINKED_IN")`, because a program can have only one
/// `plugin_module_entry`. A shared library that a program is linked with, or that is preloaded, needs only the record.
/// The closure of the record must not call `plugin_module_entry`: if several libraries of a process export it, the name
/// leads to the function of the first one.
///
/// The idea comes from BeeHive, whose annotations are records in a section of the program.
public typealias ModuleRecord = @convention(c) () -> UnsafePointer<plugin_module>
