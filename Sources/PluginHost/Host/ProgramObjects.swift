public import PluginABI

extension PluginHost {
    /// Makes an object of the program: a reference that modules can keep, pass on and call, with actions of its own.
    ///
    ///     let basket = try host.object("Basket", Basket()) {
    ///         Action("add", .instance(), .required("item", String.self)) { basket, item in basket.add(item) }
    ///     }
    ///     try host.perform("Shop", "fill", ["basket": basket])
    ///
    /// A call of the object is a call like any other, with the same checks. Its actions run on the thread of the caller,
    /// possibly concurrently. The object lives until its last holder, in the program or in a module, releases it.
    ///
    /// - Parameters:
    ///   - type: The name of the type, `[A-Za-z_][A-Za-z0-9_.-]*`, for errors and lists.
    ///   - instance: The instance that the actions get as `.instance()`.
    ///   - parent: The object that gets the events that this one does not handle. Default: none.
    ///   - actions: The actions of the object.
    /// - Throws: ``/PluginABI/PluginError/Code/invalidManifest`` if a name is not allowed or is declared twice;
    ///   ``/PluginABI/PluginError/Code/outOfResources`` if the process has sixteen million objects.
    public func object<Instance: Sendable>(
        _ type: String, _ instance: Instance, parent: Object? = nil,
        @ActionBuilder<Instance> actions: () -> [ActionDeclaration]
    ) throws(PluginError) -> Object {
        try object(ObjectType(type, Instance.self, actions: actions), instance, parent: parent)
    }

    /// Makes an object of the program, of a type that is declared once for many objects.
    ///
    ///     let pages = Page("Settings", SettingsPage.self) {
    ///         Action.content { page in page.content }
    ///     }
    ///     let page = try host.object(pages, SettingsPage())
    ///
    /// - Throws: The errors of ``object(_:_:parent:actions:)``.
    public func object<Instance: Sendable>(
        _ type: ObjectType<Instance>, _ instance: Instance, parent: Object? = nil
    ) throws(PluginError) -> Object {
        let table = core.program.hostTable!
        let made = ProgramObject(type, instance, host: table)
        let handle = ObjectTable.create(
            try core.programTypes.type(made.declaration, of: core.program), holding: made, isHeldByMaker: true)
        guard handle != 0 else {
            throw PluginError(.outOfResources, "This process has sixteen million objects; more are not possible.")
        }
        let object = Object(adopting: handle, host: table)
        if let parent { try object.setParent(parent) }
        return object
    }
}
