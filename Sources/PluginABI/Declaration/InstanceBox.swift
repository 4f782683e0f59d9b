/// Carries an instance of any Swift type across the border, as a pointer.
@usableFromInline class AnyInstanceBox {}

@usableFromInline final class InstanceBox<Instance: Sendable>: AnyInstanceBox {
    let instance: Instance

    init(_ instance: Instance) { self.instance = instance }

    /// The box as the border carries it, with one hold that ``destroy`` gives back.
    static func retained(_ instance: Instance) -> UnsafeMutableRawPointer {
        Unmanaged<AnyInstanceBox>.passRetained(InstanceBox(instance)).toOpaque()
    }

    /// The instance in a pointer that `retained` made. Sound because the host hands out a pointer only to the actions
    /// of the target or type that it was made for, in the module that made it.
    @usableFromInline static func instance(at pointer: UnsafeMutableRawPointer?) throws(PluginError) -> Instance {
        guard let pointer else {
            throw PluginError(.instanceFailed, "The action was called without its instance of \(Instance.self).")
        }
        let box = Unmanaged<AnyInstanceBox>.fromOpaque(pointer).takeUnretainedValue()
        guard type(of: box) == InstanceBox<Instance>.self else {
            throw PluginError(
                .instanceFailed, "The action works on \(Instance.self), but the object was made from another type.")
        }
        return unsafeDowncast(box, to: InstanceBox<Instance>.self).instance
    }
}

/// Gives back the hold of `InstanceBox.retained`.
func destroyInstance(_ pointer: UnsafeMutableRawPointer?) {
    if let pointer { Unmanaged<AnyInstanceBox>.fromOpaque(pointer).release() }
}
