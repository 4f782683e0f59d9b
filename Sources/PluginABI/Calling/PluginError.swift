/// The reason why a call or a load failed, or why a file was refused.
///
/// Errors cross the boundary as ``code``, ``message`` and ``source``. An error of the host itself has no source and one
/// of the codes below. An error of a module has the module as its source and a code of the module's choice. To choose
/// code and message, throw a `PluginError` from an action; any other error arrives as ``Code/actionFailed``.
public struct PluginError: Error, Sendable, Hashable, CustomStringConvertible {
    /// A short word for programs. The set of codes is open: modules add codes of their own.
    public struct Code: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
        public var rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }
        public init(stringLiteral value: String) { rawValue = value }
        public var description: String { rawValue }
    }

    /// The kind of error, for programs.
    public var code: Code
    /// A description for people, in one or two sentences: what happened, to what, and what to do about it.
    public var message: String { didSet { fault = nil } }
    /// The name of the module that failed; `nil` for an error of the host itself.
    public var source: String? {
        get { details?.source }
        set { details = .make(newValue, fault) }
    }
    /// What is wrong with a value, until it is known which value that is. Not a part of the error's identity.
    var fault: ValueFault? {
        get { details?.fault }
        set { details = .make(source, newValue) }
    }

    /// The parts that most errors do not have, behind one reference, because every call reserves space for an error.
    private final class Details: Sendable {
        let source: String?
        let fault: ValueFault?

        private init(source: String?, fault: ValueFault?) { (self.source, self.fault) = (source, fault) }

        static func make(_ source: String?, _ fault: ValueFault?) -> Details? {
            source == nil && fault == nil ? nil : Details(source: source, fault: fault)
        }
    }

    private var details: Details?

    /// Makes an error, to be thrown by an action.
    ///
    /// - Parameters:
    ///   - code: A short word for programs: one of your own (`"outOfStock"`) or one of the host's.
    ///   - message: What happened, to what, and what to do about it.
    ///   - source: Leave it out: the host fills in the module that failed.
    public init(_ code: Code, _ message: String, source: String? = nil) {
        self.code = code
        self.message = message
        details = .make(source, nil)
    }

    init(_ code: Code, _ fault: ValueFault, _ whole: ValueFault.Whole, of owner: String, source: String? = nil) {
        self.init(code, fault.message(whole, of: owner))
        details = .make(source, fault)
    }

    public static func == (a: PluginError, b: PluginError) -> Bool {
        a.code == b.code && a.message == b.message && a.source == b.source
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(code)
        hasher.combine(message)
        hasher.combine(source)
    }

    public var description: String { source.map { "\($0): \(code): \(message)" } ?? "\(code): \(message)" }
}

extension PluginError.Code {
    // Addressing

    /// No module offers a target of that name.
    public static let unknownTarget: Self = "unknownTarget"
    /// The target, or the object's type, has no action of that name.
    public static let unknownAction: Self = "unknownAction"
    /// No module offers a service of that name in an acceptable version.
    public static let unknownService: Self = "unknownService"
    /// There is no module of that name.
    public static let unknownModule: Self = "unknownModule"
    /// The module that offers the target or the service is known, but is not serving: it was removed, has failed, or is
    /// waiting.
    public static let moduleUnavailable: Self = "moduleUnavailable"
    /// The text is not a URL, or the URL does not address anything.
    public static let invalidURL: Self = "invalidURL"
    /// The pattern of a route is not valid, or cannot be matched in linear time.
    public static let invalidPattern: Self = "invalidPattern"
    /// The object's module was replaced or removed, and the time limit for its objects has passed.
    public static let generationRetired: Self = "generationRetired"
    /// The object no longer exists, because its last holder has released it; or its type is not declared.
    public static let unknownObject: Self = "unknownObject"

    // Parameters and results

    /// A required parameter was not given.
    public static let missingParameter: Self = "missingParameter"
    /// A parameter was given that the action does not declare.
    public static let unknownParameter: Self = "unknownParameter"
    /// A parameter's value is not of the declared type, and cannot be converted to it without loss.
    public static let mistypedParameter: Self = "mistypedParameter"
    /// A value cannot cross the boundary: a string is not valid UTF-8, lists are nested too deeply, or a kind does not
    /// exist.
    public static let invalidValue: Self = "invalidValue"
    /// The action replied with a value that cannot be passed on, or that is not of the type that the caller expects.
    public static let invalidResult: Self = "invalidResult"

    // Calls

    /// A request from another program, other than a URL, names an action that is not declared `remote`. For URLs, see
    /// ``noRoute``.
    public static let notRemote: Self = "notRemote"
    /// The program's guard refused a call that came from another program, or the posted event has a name that is
    /// reserved for the host.
    public static let refused: Self = "refused"
    /// A URL from another program leads to nothing that other programs may open: to nothing at all, or to actions that
    /// are not declared `remote`. The error does not say which; the host's log does.
    public static let noRoute: Self = "noRoute"
    /// A URL was opened with an HTTP method, and only routes of other methods match it. The message names
    /// them, and `URLExplanation.methods` of the host lists them.
    public static let methodNotAllowed: Self = "methodNotAllowed"
    /// The program's guard can decide about the call only asynchronously, and the caller cannot wait.
    public static let asynchronousGuard: Self = "asynchronousGuard"
    /// A route leads to an action that no module offers, or has groups or defaults that the action does not take.
    public static let deadRoute: Self = "deadRoute"
    /// For this call, the configuration names an interceptor that no module currently offers.
    public static let interceptorMissing: Self = "interceptorMissing"
    /// The action failed with an error that has no code of its own.
    public static let actionFailed: Self = "actionFailed"
    /// A synchronous call addressed an asynchronous action.
    public static let asynchronousAction: Self = "asynchronousAction"
    /// A blocking call was made inside a Swift task.
    public static let blockingInTask: Self = "blockingInTask"
    /// A synchronous action returned without a reply, or an asynchronous one released its reply handle without
    /// replying.
    public static let noReply: Self = "noReply"
    /// The deadline passed.
    public static let deadlineExceeded: Self = "deadlineExceeded"
    /// More is waiting than the host allows: calls while a module hands over its state, or calls and unread answers of
    /// the control socket. The message names the limit.
    public static let overloaded: Self = "overloaded"
    /// The system refuses to give the host more threads, memory or memory mappings. The message names the limit.
    public static let outOfResources: Self = "outOfResources"
    /// The caller cancelled the call.
    public static let cancelled: Self = "cancelled"
    /// Calls are nested too deeply, because modules call each other endlessly, or too many asynchronous calls are in
    /// flight.
    public static let recursionLimit: Self = "recursionLimit"
    /// The call would wait for a serial module or an instance that is itself waiting for this call.
    public static let circularWait: Self = "circularWait"
    /// The instance of the target could not be made.
    public static let instanceFailed: Self = "instanceFailed"
    /// The isolated module that ran the call is no longer running: it crashed, exited, or was ended because it hung.
    /// Whether the call has had an effect is unknown. For a file: its code crashed or exited during a safe scan.
    public static let moduleCrashed: Self = "moduleCrashed"
    /// The host is not running.
    public static let hostStopped: Self = "hostStopped"

    // Pages

    /// A page was pushed, but there is no stack on top to push it onto.
    public static let noStack: Self = "noStack"
    /// The page's `shouldOpen` refused to open it.
    public static let pageRefused: Self = "pageRefused"
    /// The page is not open: it was closed before, or does not belong to this navigator.
    public static let pageNotOpen: Self = "pageNotOpen"
    /// The page to be opened is already open.
    public static let pageOpen: Self = "pageOpen"
    /// Fewer pages are open than should be closed.
    public static let nothingToClose: Self = "nothingToClose"

    /// A configuration cannot be used: its file is not JSON, or its content is not valid.
    public static let invalidConfiguration: Self = "invalidConfiguration"

    // Files and modules

    /// A folder or file cannot be read, or does not exist.
    public static let unreadable: Self = "unreadable"
    /// Users other than the host's user and root could write the file or its folder.
    public static let untrusted: Self = "untrusted"
    /// The file is not a module: it is not a regular file, not a complete shared object for this machine, or has no
    /// entry symbol.
    public static let invalidFile: Self = "invalidFile"
    /// The file could not be staged.
    public static let stagingFailed: Self = "stagingFailed"
    /// The dynamic linker refused the file.
    public static let openFailed: Self = "openFailed"
    /// The description that the entry function returned is not valid.
    public static let invalidDescription: Self = "invalidDescription"
    /// The module was built for another binary interface or by another toolchain.
    public static let incompatible: Self = "incompatible"
    /// The manifest is not JSON, violates the schema, or does not match the function table.
    public static let invalidManifest: Self = "invalidManifest"
    /// The manifest in the seal of the file is not the manifest that its code returns.
    public static let sealMismatch: Self = "sealMismatch"
    /// A route file is neither JSON nor a property list, or one of its routes is not valid.
    public static let invalidRouteFile: Self = "invalidRouteFile"
    /// A service file is neither JSON nor a property list, or one of its services is not valid.
    public static let invalidServiceFile: Self = "invalidServiceFile"
    /// The module, route file or service file claims something that another one already has, or a request contradicts
    /// the present state: for instance, a version that it puts back would not serve.
    public static let conflict: Self = "conflict"
    /// The module refused to be activated, or one of its hooks failed or took too long.
    public static let activationFailed: Self = "activationFailed"
    /// A module waits for another module, or for a service, that is missing.
    public static let missingRequirement: Self = "missingRequirement"
    /// A module waits because a requirement is present only in a version that is not acceptable.
    public static let wrongVersion: Self = "wrongVersion"
    /// The requirements of modules form a cycle.
    public static let circularRequirement: Self = "circularRequirement"
    /// A module waits for another module that is itself waiting.
    public static let requirementWaits: Self = "requirementWaits"
    /// An isolated module waits for a permission that no rule grants, or a module that requires isolation is not
    /// isolated.
    public static let permissionMissing: Self = "permissionMissing"
    /// The module cannot be removed, because other modules require it.
    public static let required: Self = "required"
    /// There is no kept version of the module to roll back to.
    public static let noVersionKept: Self = "noVersionKept"
    /// The file's module was being started when the host died, and the file has not changed since.
    public static let quarantined: Self = "quarantined"
}

extension PluginError {
    /// The error as a map with `code`, `message` and, if a module failed, `source`.
    package var record: Value {
        var entries: [String: Value] = ["code": .string(code.rawValue), "message": .string(message)]
        if let source { entries["source"] = .string(source) }
        return .map(entries)
    }

    /// Makes an error from a map with `code`, `message` and, if a module failed, `source`.
    package init(_ record: Value) {
        self.init(
            .init(rawValue: record["code"]?.string ?? ""), record["message"]?.string ?? "",
            source: record["source"]?.string)
    }
}

extension PluginError {
    /// Returns the error for an extension of the binary interface that the host lacks. Not inlined, so that its
    /// callers, which are part of the call path, stay small.
    @inline(never)
    static func missingExtension(_ name: String, _ code: Code) -> PluginError {
        PluginError(code, "This host lacks the extension \(name). Use a newer host.")
    }
}
