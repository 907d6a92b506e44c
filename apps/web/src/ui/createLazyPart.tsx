import {
  Component,
  type ComponentType,
  type LazyExoticComponent,
  lazy,
  type ReactNode,
  Suspense,
  useState,
} from 'react'
import { Button } from './Button.tsx'
import { Notice } from './Notice.tsx'

type Attempt<Props> = LazyExoticComponent<ComponentType<Props>>

/**
 * A part of a page whose script is loaded when the part is first shown. If loading fails, the rest of the page stays and the part shows a
 * retry button.
 */
export function createLazyPart<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
  fallback: ReactNode,
): (props: Props) => ReactNode {
  // React caches a rejected lazy component, so every attempt needs a new one.
  const begin = (): Attempt<Props> =>
    lazy(async () => {
      try {
        return { default: await load() }
      } catch (error) {
        latest = begin()
        throw error
      }
    })
  let latest = begin()
  const getLatest = () => latest
  return (props) => <LazyPart getLatest={getLatest} fallback={fallback} props={props} />
}

type LazyPartProps<Props> = { getLatest: () => Attempt<Props>; fallback: ReactNode; props: Props }

function LazyPart<Props extends object>({ getLatest, fallback, props }: LazyPartProps<Props>) {
  const [Part, setPart] = useState(getLatest)
  return (
    <PartBoundary onRetry={() => setPart(getLatest)}>
      <Suspense fallback={fallback}>
        <Part {...props} />
      </Suspense>
    </PartBoundary>
  )
}

type PartBoundaryProps = { onRetry: () => void; children: ReactNode }

/** React supports error boundaries only as classes. */
class PartBoundary extends Component<PartBoundaryProps, { hasFailed: boolean }> {
  override state = { hasFailed: false }

  static getDerivedStateFromError() {
    return { hasFailed: true }
  }

  override render() {
    if (!this.state.hasFailed) return this.props.children
    const retry = () => {
      this.props.onRetry()
      this.setState({ hasFailed: false })
    }
    return (
      <Notice tone="warning" title="This part of the page is unavailable" isAlert>
        <p>
          It didn’t load, or it stopped working. Check your connection and try again. If that fails, reload the page.
        </p>
        <p className="actions">
          <Button look="quiet" onClick={retry}>
            Try again
          </Button>
        </p>
      </Notice>
    )
  }
}
