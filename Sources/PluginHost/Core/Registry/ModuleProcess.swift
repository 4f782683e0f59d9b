/// The process of its own in which the code of an isolated module runs.
protocol ModuleProcess: AnyObject, Sendable {
    /// The process id.
    var id: Int32 { get }

    /// Why the process is not there any more, as a sentence; `nil` while it runs.
    var ending: String? { get }

    /// Ends the process, which is no longer needed.
    func end()
}

extension Generation {
    /// Whether its process of its own has ended, so that nothing in it can be called any more.
    var hasCrashed: Bool { module?.hasEnded == true }
}

extension LoadedModule {
    /// Whether its process has ended, so that none of its code can be called any more.
    var hasEnded: Bool { process?.ending != nil }
}
