/// Why a call, a load or a file was refused or failed.
///
/// Errors cross the binary border as ``code``, ``message`` and ``source``. An error that the host itself raises has
/// no source and one of the codes below; an error that a module throws names the module, and its code is the module's
/// own. Throw a `PluginError` from an action to choose both; any other error arrives as ``Code/actionFailed``.
public struct PluginError: Error, Sendable, Hashable, CustomStringConvertible {
    /// A short word for programs. Open: modules bring codes of their own.
    public struct Code: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
        public var rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }
        public init(stringLiteral value: String) { rawValue = value }
        public var description: String { rawValue }
    }

    /// What went wrong, for programs.
    public var code: Code
    /// What happened, to what, and what to do about it, for people. One sentence or two.
    public var message: String
    /// The module that failed; nil when the host itself refused.
    public var source: String?

    /// Makes an error, to be thrown by an action.
    ///
    /// - Parameters:
    ///   - code: A short word for programs; one of yours (`"outOfStock"`) or of the host.
    ///   - message: What happened, to what, and what to do about it.
    ///   - source: Leave it out: the host fills in the module that failed.
    public init(_ code: Code, _ message: String, source: String? = nil) {
        self.code = code
        self.message = message
        self.source = source
    }

    public var description: String { source.map { "\($0): \(code): \(message)" } ?? "\(code): \(message)" }
}

extension PluginError.Code {
    // Addressing

    /// No module offers a target of that name.
    public static let unknownTarget: Self = "unknownTarget"
    /// The target, or the object's type, has no action of that name.
    public static let unknownAction: Self = "unknownAction"
    /// No module offers a service of that name, or not in a version that will do.
    public static let unknownService: Self = "unknownService"
    /// No module of that name is there.
    public static let unknownModule: Self = "unknownModule"
    /// What offers the target or the service is known, and is not served: it was removed, has failed, or waits.
    public static let moduleUnavailable: Self = "moduleUnavailable"
    /// The text is no URL, or one that does not address anything.
    public static let invalidURL: Self = "invalidURL"
    /// The pattern of a route cannot be read, or not be matched in linear time.
    public static let invalidPattern: Self = "invalidPattern"
    /// The object's module was replaced or removed, and the time that its objects had after that is over.
    public static let generationRetired: Self = "generationRetired"
    /// The object is gone: its last holder has released it.
    public static let unknownObject: Self = "unknownObject"

    // Parameters and results

    /// A required parameter was not given.
    public static let missingParameter: Self = "missingParameter"
    /// A parameter was given that the action does not declare.
    public static let unknownParameter: Self = "unknownParameter"
    /// A parameter has a value of another type than declared, and no conversion without loss.
    public static let mistypedParameter: Self = "mistypedParameter"
    /// A value cannot cross the border: a string that is no UTF-8, lists nested too deeply, a kind that does not exist.
    public static let invalidValue: Self = "invalidValue"
    /// The action replied with something that cannot be passed on.
    public static let invalidResult: Self = "invalidResult"

    // Calls

    /// The call came from another program, and the action is not declared `remote`.
    public static let notRemote: Self = "notRemote"
    /// The program's guard refused a call that came from another program.
    public static let refused: Self = "refused"
    /// The configuration puts an interceptor around the call that no module offers now.
    public static let interceptorMissing: Self = "interceptorMissing"
    /// The action failed with an error that brought no code of its own.
    public static let actionFailed: Self = "actionFailed"
    /// A synchronous call was made of an asynchronous action.
    public static let asynchronousAction: Self = "asynchronousAction"
    /// A blocking call was made inside a Swift task.
    public static let blockingInTask: Self = "blockingInTask"
    /// A synchronous action returned without a reply, or an asynchronous one dropped its reply handle.
    public static let noReply: Self = "noReply"
    /// The deadline passed.
    public static let deadlineExceeded: Self = "deadlineExceeded"
    /// More is asked for than the host lets wait: calls while a module hands its state over, or calls and unread answers of
    /// the control socket. The message names the limit.
    public static let overloaded: Self = "overloaded"
    /// The system gives the host no more threads, memory or memory maps; the message names the limit.
    public static let outOfResources: Self = "outOfResources"
    /// The caller cancelled the call.
    public static let cancelled: Self = "cancelled"
    /// Calls are nested too deeply: modules call each other without end.
    public static let recursionLimit: Self = "recursionLimit"
    /// The call would wait for a serial module or an instance that is itself waiting for this call.
    public static let circularWait: Self = "circularWait"
    /// The instance of the target could not be made.
    public static let instanceFailed: Self = "instanceFailed"
    /// The host is not running.
    public static let hostStopped: Self = "hostStopped"

    // Pages

    /// A page was pushed where there is no stack on top.
    public static let noStack: Self = "noStack"
    /// The page, asked whether it should open, said no.
    public static let pageRefused: Self = "pageRefused"
    /// The page is not open: it was closed before, or is none of this navigator's.
    public static let pageNotOpen: Self = "pageNotOpen"
    /// The page that was to be opened is open already.
    public static let pageOpen: Self = "pageOpen"
    /// There are fewer pages than were to be closed.
    public static let nothingToClose: Self = "nothingToClose"

    /// A configuration cannot be used: its file is not JSON, or it says something that cannot be.
    public static let invalidConfiguration: Self = "invalidConfiguration"

    // Files and modules

    /// A folder or file cannot be read, or does not exist.
    public static let unreadable: Self = "unreadable"
    /// Others than the host's user and root could write the file or its folder.
    public static let untrusted: Self = "untrusted"
    /// The file is no module: no regular file, no complete shared object for this machine, no entry symbol.
    public static let invalidFile: Self = "invalidFile"
    /// The copy that would be opened could not be made.
    public static let stagingFailed: Self = "stagingFailed"
    /// The dynamic linker refused the file.
    public static let openFailed: Self = "openFailed"
    /// The description that the entry function returned is not acceptable.
    public static let invalidDescription: Self = "invalidDescription"
    /// The module was built for another binary interface or by another toolchain.
    public static let incompatible: Self = "incompatible"
    /// The manifest is not JSON, breaks the schema, or does not fit the function table.
    public static let invalidManifest: Self = "invalidManifest"
    /// A route file is neither JSON nor a property list, or one of its routes is not what it must be.
    public static let invalidRouteFile: Self = "invalidRouteFile"
    /// A service file is neither JSON nor a property list, or one of its services is not what it must be.
    public static let invalidServiceFile: Self = "invalidServiceFile"
    /// The module, the route file or the service file claims something that another one has.
    public static let conflict: Self = "conflict"
    /// The module refused to be activated, or its `setUp` failed.
    public static let activationFailed: Self = "activationFailed"
    /// A module waits for another one, or for a service, that is not there.
    public static let missingRequirement: Self = "missingRequirement"
    /// A module waits because what it requires is there in a version that will not do.
    public static let wrongVersion: Self = "wrongVersion"
    /// Modules wait for each other in a circle.
    public static let circularRequirement: Self = "circularRequirement"
    /// A module waits for another one that waits itself.
    public static let requirementWaits: Self = "requirementWaits"
    /// Other modules require what was to be removed.
    public static let required: Self = "required"
    /// No version of the module is kept that could be put back.
    public static let noVersionKept: Self = "noVersionKept"
    /// The file was being loaded when the host died, and has not changed since.
    public static let quarantined: Self = "quarantined"
}

extension PluginError {
    /// The error as a value: a map with `code`, `message` and, where a module failed, `source`.
    package var record: Value {
        var entries: [String: Value] = ["code": .string(code.rawValue), "message": .string(message)]
        if let source { entries["source"] = .string(source) }
        return .map(entries)
    }

    /// Of such a map.
    package init(_ record: Value) {
        self.init(
            .init(rawValue: record["code"]?.string ?? ""), record["message"]?.string ?? "",
            source: record["source"]?.string)
    }
}
