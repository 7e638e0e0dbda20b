package portfoliorisk

// Limits of the inputs. The tags of Input repeat them for the schema.
const (
	maxPositions = 500
	maxSymbol    = 32
	maxSector    = 64
	maxWeight    = 5 // five times the capital in one position, long or short
	maxValue     = 1e15
	minReturns   = 2 // a sample variance needs two returns
	maxReturns   = 5000
	minReturn    = -1 // a loss of everything
	maxReturn    = 10
	minRate      = -0.5
	maxRate      = 1
	maxPeriods   = 365
	minLevel     = 0.5
	maxLevel     = 0.999

	sumOfWeights = 1e-6  // tolerated difference of the sum of the weights from 1
	noDeviation  = 1e-15 // a smaller standard deviation is rounding error
	unclassified = "unclassified"
)

// Parameters of the score. Each part of the score reaches its maximum at its constant full…, and
// counts with its weight, the constant …Part.
const (
	fullVolatility = 0.40
	fullDrawdown   = 0.50
	fullHHI        = 0.25

	volatilityPart    = 0.35
	drawdownPart      = 0.25
	concentrationPart = 0.25
	sharpePart        = 0.15
)

// Thresholds of findings.
const (
	singleHigh, singleMedium = 0.25, 0.10
	sectorHigh, sectorMedium = 0.40, 0.25
	fewHoldings              = 5.0
	highVolatility           = 0.30
	deepDrawdown             = 0.30
	shortHistory             = 30
	percentReturn            = 0.5  // a larger return was probably written in percent
	percentRate              = 0.25 // a larger rate was probably written in percent
	leverage                 = 1 + 1e-6
)
