// A component that draws again only if one of its properties is another.

import { Component, type ComponentChild, type ComponentType, h } from "preact";

export function memo<P extends object>(inner: (props: P) => ComponentChild): ComponentType<P> {
  return class extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>): boolean {
      const names = new Set([...Object.keys(next), ...Object.keys(this.props)]) as Set<keyof P>;
      return [...names].some((name) => next[name] !== this.props[name]);
    }

    override render() {
      return h(inner as ComponentType<P>, this.props as P & { key?: never });
    }
  } as ComponentType<P>;
}
