/// What a module leaves in the section `plugin_modules`, so that a program that it is linked into finds it.
///
/// A module that can be both, a shared library and a part of a program, has two ways to be found:
///
///     @section("plugin_modules") @used
///     private let record: ModuleRecord = { Shop.export() }
///
///     #if !PLUGIN_LINKED_IN
///         @_cdecl("plugin_module_entry")
///         public func entry() -> UnsafePointer<plugin_module> { Shop.export() }
///     #endif
///
/// Compile it with `.define("PLUGIN_LINKED_IN")` to link it in: a program can have only one `plugin_module_entry`. The
/// idea is that of BeeHive, whose annotations are records in a section of the program.
public typealias ModuleRecord = @convention(c) () -> UnsafePointer<plugin_module>
