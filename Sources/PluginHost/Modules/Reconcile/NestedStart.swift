import PluginABI

/// The start of a registered module, and of those that it requires, while another change waits for code of a module.
/// Nothing else changes.
struct NestedStart {
    private let context: ChangeContext
    private let name: String
    /// What the outer change starts.
    private let outerBatch: Set<ObjectIdentifier>
    /// What the outer change proposes.
    private let outerProposed: Proposed?
    private var newcomers: Newcomers

    init(_ context: ChangeContext, of name: String) {
        (self.context, self.name) = (context, name)
        (outerBatch, outerProposed) = (context.starts.batch, context.proposed)
        newcomers = Newcomers(context)
    }

    /// Starts the module. If that fails, the reason is stored in the record of its file.
    ///
    /// - Throws: `circularWait` if the module requires one that another change is starting.
    mutating func run() throws(PluginError) {
        defer { context.starts.batch = outerBatch }
        context.unpublished += 1
        let outcome: Result<Plan?, PluginError>
        do throws(PluginError) { outcome = .success(try start()) } catch { outcome = .failure(error) }
        context.unpublished -= 1
        if case .success(let plan?) = outcome {
            publish(plan)
            newcomers.retireAbandoned()
        } else {
            context.proposed = outerProposed
            context.propose()
            newcomers.retireAll()
        }
        _ = try outcome.get()
    }

    /// Sets up and initializes the newcomers.
    ///
    /// - Returns: The plan that they follow; `nil` if the module cannot be started.
    private mutating func start() throws(PluginError) -> Plan? {
        while let plan = try context.plan(starting: name).starting(name, besides: context, busy: outerBatch) {
            newcomers.dropAll(besides: plan)
            context.proposed = outerProposed
            context.starts.batch = outerBatch.union(plan.fresh)
            if newcomers.start(plan) { return plan }
        }
        return nil
    }

    private func publish(_ plan: Plan) {
        // The modules that the outer change starts see all that was started, including by starts nested in this one.
        let started = context.serving.all.map(\.generation) + newcomers.all.values.map(\.generation)
        Publication(context, plan, newcomers.all).make(within: outerProposed?.with(started))
        context.nestedStarts += 1
    }
}
